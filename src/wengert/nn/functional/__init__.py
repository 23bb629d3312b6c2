"""Functions of networks: activations, losses, and layers that hold no parameters."""

from ...core.tensor import AbstractOperator as _AbstractOperator
from ...dispatch.overridable import Overridable as _Overridable
from ...operators.affine import linear as linear
from .activations import celu as celu
from .activations import elu as elu
from .activations import gelu as gelu
from .activations import glu as glu
from .activations import hardshrink as hardshrink
from .activations import hardsigmoid as hardsigmoid
from .activations import hardswish as hardswish
from .activations import hardtanh as hardtanh
from .activations import leaky_relu as leaky_relu
from .activations import log_softmax as log_softmax
from .activations import logsigmoid as logsigmoid
from .activations import mish as mish
from .activations import prelu as prelu
from .activations import relu as relu
from .activations import relu6 as relu6
from .activations import selu as selu
from .activations import sigmoid as sigmoid
from .activations import silu as silu
from .activations import softmax as softmax
from .activations import softmin as softmin
from .activations import softplus as softplus
from .activations import softshrink as softshrink
from .activations import softsign as softsign
from .activations import tanh as tanh
from .activations import tanhshrink as tanhshrink
from .activations import threshold as threshold
from .attention import multi_head_attention_forward as multi_head_attention_forward
from .attention import scaled_dot_product_attention as scaled_dot_product_attention
from .layers import cosine_similarity as cosine_similarity
from .layers import dropout as dropout
from .layers import dropout1d as dropout1d
from .layers import dropout2d as dropout2d
from .layers import dropout3d as dropout3d
from .layers import embedding as embedding
from .layers import layer_norm as layer_norm
from .layers import normalize as normalize
from .layers import one_hot as one_hot
from .layers import pad as pad
from .layers import pairwise_distance as pairwise_distance
from .layers import rms_norm as rms_norm
from .losses import binary_cross_entropy as binary_cross_entropy
from .losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .losses import cross_entropy as cross_entropy
from .losses import huber_loss as huber_loss
from .losses import kl_div as kl_div
from .losses import l1_loss as l1_loss
from .losses import mse_loss as mse_loss
from .losses import nll_loss as nll_loss
from .losses import smooth_l1_loss as smooth_l1_loss


def _make_overridable() -> None:
    """Let classes and modes override what is imported above."""
    for name, value in list(globals().items()):
        public = callable(value) and not name.startswith("_")
        if public and not isinstance(value, _AbstractOperator):
            globals()[name] = _Overridable(value, module=__name__, name=name)


_make_overridable()
