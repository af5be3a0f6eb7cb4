"""The HTTP face: routes as data, an application made of them, and streams. It recognises people, and decides nothing else."""
