"""``python -m modelserve``: the command ``modelserve``."""

from modelserve import cli

if __name__ == "__main__":
    cli.main(prog_name="modelserve")
