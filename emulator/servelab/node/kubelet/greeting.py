"""What the image hello-world says: its program writes this and ends (hello.c, built for amd64)."""

COMMAND = ("/hello",)
TEXT = """
Hello from Docker!
This message shows that your installation appears to be working correctly.

To generate this message, Docker took the following steps:
 1. The Docker client contacted the Docker daemon.
 2. The Docker daemon pulled the "hello-world" image from the Docker Hub.
    (amd64)
 3. The Docker daemon created a new container from that image which runs the
    executable that produces the output you are currently reading.
 4. The Docker daemon streamed that output to the Docker client, which sent it
    to your terminal.

To try something more ambitious, you can run an Ubuntu container with:
 $ docker run -it ubuntu bash

Share images, automate workflows, and more with a free Docker ID:
 https://hub.docker.com/

For more examples and ideas, visit:
 https://docs.docker.com/get-started/

"""


def refusal(program: str) -> str:
    """What runc says of any other program: there is none."""
    why = f"stat {program}: no such file or directory"
    return f'exec: "{program}": {why if "/" in program else "executable file not found in $PATH"}'
