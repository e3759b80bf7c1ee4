"""The outsides of the engines: paths, bodies, errors, streams."""
