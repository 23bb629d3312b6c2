"""Custom operators: schemas, definitions, kernels and derivatives.

`custom_op` makes an operator of a function, and `Library` defines operators the long way. Operators
are called themselves or through ``wengert.ops.<namespace>.<name>``.
"""

from .boxed_kernels import get_kernel as get_kernel
from .checks import OpCheckError as OpCheckError
from .checks import opcheck as opcheck
from .custom_ops import CustomOpDef as CustomOpDef
from .custom_ops import custom_op as custom_op
from .keys import DispatchKeySet as DispatchKeySet
from .keys import after_autograd_keyset as after_autograd_keyset
from .keys import full_keyset as full_keyset
from .libraries import Library as Library
from .libraries import _scoped_library as _scoped_library
from .libraries import define as define
from .libraries import fallthrough_kernel as fallthrough_kernel
from .libraries import impl as impl
from .libraries import register_autograd as register_autograd
from .libraries import register_fake as register_fake
from .libraries import register_kernel as register_kernel
from .libraries import register_torch_dispatch as register_torch_dispatch
from .libraries import register_vmap as register_vmap
from .signatures import infer_schema as infer_schema
from .tags import Tag as Tag

__all__ = [
    "CustomOpDef",
    "DispatchKeySet",
    "Library",
    "Tag",
    "after_autograd_keyset",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "full_keyset",
    "get_kernel",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]
