"""Models, GPUs, storage classes, images, engine start: numbers with unit and source."""
