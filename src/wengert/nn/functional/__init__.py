"""Functions of networks: activations, losses, and layers that hold no parameters."""

from typing import Any as _Any

from ...core.missing import missing as _missing
from ...core.tensor import AbstractOperator as _AbstractOperator
from ...dispatch.overridable import Overridable as _Overridable
from ...operators.affine import linear as linear
from ...operators.distances import pdist as pdist
from .activations import celu as celu
from .activations import celu_ as celu_
from .activations import elu as elu
from .activations import elu_ as elu_
from .activations import gelu as gelu
from .activations import glu as glu
from .activations import hardshrink as hardshrink
from .activations import hardsigmoid as hardsigmoid
from .activations import hardswish as hardswish
from .activations import hardtanh as hardtanh
from .activations import hardtanh_ as hardtanh_
from .activations import leaky_relu as leaky_relu
from .activations import leaky_relu_ as leaky_relu_
from .activations import log_softmax as log_softmax
from .activations import logsigmoid as logsigmoid
from .activations import mish as mish
from .activations import prelu as prelu
from .activations import relu as relu
from .activations import relu6 as relu6
from .activations import relu_ as relu_
from .activations import selu as selu
from .activations import selu_ as selu_
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
from .activations import threshold_ as threshold_
from .adaptive_pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from .adaptive_pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from .adaptive_pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from .adaptive_pooling import adaptive_max_pool1d as adaptive_max_pool1d
from .adaptive_pooling import adaptive_max_pool2d as adaptive_max_pool2d
from .adaptive_pooling import adaptive_max_pool3d as adaptive_max_pool3d
from .alignments import ctc_loss as ctc_loss
from .attention import multi_head_attention_forward as multi_head_attention_forward
from .attention import scaled_dot_product_attention as scaled_dot_product_attention
from .bags import bilinear as bilinear
from .bags import embedding_bag as embedding_bag
from .convolutions import conv1d as conv1d
from .convolutions import conv2d as conv2d
from .convolutions import conv3d as conv3d
from .convolutions import conv_tbc as conv_tbc
from .convolutions import conv_transpose1d as conv_transpose1d
from .convolutions import conv_transpose2d as conv_transpose2d
from .convolutions import conv_transpose3d as conv_transpose3d
from .fractional_pooling import fractional_max_pool2d as fractional_max_pool2d
from .fractional_pooling import fractional_max_pool3d as fractional_max_pool3d
from .grids import affine_grid as affine_grid
from .grids import grid_sample as grid_sample
from .interpolation import interpolate as interpolate
from .interpolation import upsample as upsample
from .interpolation import upsample_bilinear as upsample_bilinear
from .interpolation import upsample_nearest as upsample_nearest
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
from .margins import cosine_embedding_loss as cosine_embedding_loss
from .margins import gaussian_nll_loss as gaussian_nll_loss
from .margins import hinge_embedding_loss as hinge_embedding_loss
from .margins import linear_cross_entropy as linear_cross_entropy
from .margins import margin_ranking_loss as margin_ranking_loss
from .margins import multi_margin_loss as multi_margin_loss
from .margins import multilabel_margin_loss as multilabel_margin_loss
from .margins import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from .margins import poisson_nll_loss as poisson_nll_loss
from .margins import soft_margin_loss as soft_margin_loss
from .margins import triplet_margin_loss as triplet_margin_loss
from .margins import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from .normalisation import batch_norm as batch_norm
from .normalisation import group_norm as group_norm
from .normalisation import instance_norm as instance_norm
from .normalisation import local_response_norm as local_response_norm
from .pooling import avg_pool1d as avg_pool1d
from .pooling import avg_pool2d as avg_pool2d
from .pooling import avg_pool3d as avg_pool3d
from .pooling import lp_pool1d as lp_pool1d
from .pooling import lp_pool2d as lp_pool2d
from .pooling import lp_pool3d as lp_pool3d
from .pooling import max_pool1d as max_pool1d
from .pooling import max_pool2d as max_pool2d
from .pooling import max_pool3d as max_pool3d
from .pooling import max_unpool1d as max_unpool1d
from .pooling import max_unpool2d as max_unpool2d
from .pooling import max_unpool3d as max_unpool3d
from .randomness import alpha_dropout as alpha_dropout
from .randomness import feature_alpha_dropout as feature_alpha_dropout
from .randomness import gumbel_softmax as gumbel_softmax
from .randomness import rrelu as rrelu
from .randomness import rrelu_ as rrelu_
from .rearranging import channel_shuffle as channel_shuffle
from .rearranging import fold as fold
from .rearranging import pixel_shuffle as pixel_shuffle
from .rearranging import pixel_unshuffle as pixel_unshuffle
from .rearranging import unfold as unfold
from .with_indices import adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices
from .with_indices import adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices
from .with_indices import adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices
from .with_indices import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from .with_indices import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
from .with_indices import max_pool1d_with_indices as max_pool1d_with_indices
from .with_indices import max_pool2d_with_indices as max_pool2d_with_indices
from .with_indices import max_pool3d_with_indices as max_pool3d_with_indices


def __getattr__(name: str) -> _Any:
    raise _missing(__name__, name)


def _make_overridable() -> None:
    """Let classes and modes override what is imported above."""
    for name, value in list(globals().items()):
        public = callable(value) and not name.startswith("_")
        if public and not isinstance(value, _AbstractOperator):
            globals()[name] = _Overridable(value, module=__name__, name=name)


_make_overridable()
