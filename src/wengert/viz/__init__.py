"""Pictures of programs: recorded and traced graphs, memory held for backward, profiles.

Every picture shows itself in a notebook and is saved by `save(path)`: as one HTML page that fetches
nothing, or, by the ending of the path, as what the class of the picture says.
"""

from .drawing import Drawing as Drawing
from .drawing import graph as graph
from .flames import Flames as Flames
from .flames import profile as profile
from .footprint import Advice as Advice
from .footprint import Footprint as Footprint
from .footprint import memory as memory

__all__ = ["Advice", "Drawing", "Flames", "Footprint", "graph", "memory", "profile"]
