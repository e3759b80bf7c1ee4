"""``python -m servelab``."""

from servelab.cli import main

if __name__ == "__main__":
    main()
