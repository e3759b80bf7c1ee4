"""A small HTTP/1.1 server: parsing by httptools, one asyncio protocol a connection, no coroutines.

It knows nothing of engines: it hands whole requests to the routes' handlers and gives each its way
back. What it answers by itself, and when, follows uvicorn with httptools, which the Python engines
run on.
"""
