"""The same functions in plain torch (slower, right). Needed by speculative verification at temperatures above 0."""

import torch


def _col(x, p):
    return (
        x.to(p.device).view(-1, 1) if isinstance(x, torch.Tensor) else torch.full((p.shape[0], 1), x, device=p.device)
    )


def top_k_renorm_probs(probs, top_k, *a, **k):
    p = probs.float()
    s = p.sort(-1, descending=True).values
    kk = _col(top_k, p).long().clamp(1, p.shape[-1])
    p = torch.where(p >= s.gather(-1, kk - 1), p, 0.0)
    return p / p.sum(-1, keepdim=True)


def top_p_renorm_probs(probs, top_p, *a, **k):
    p = probs.float()
    s, i = p.sort(-1, descending=True)
    keep = (s.cumsum(-1) - s) < _col(top_p, p).float()
    keep[:, 0] = True
    p = torch.zeros_like(p).scatter_(-1, i, torch.where(keep, s, 0.0))
    return p / p.sum(-1, keepdim=True)


top_k_renorm_prob, top_p_renorm_prob = top_k_renorm_probs, top_p_renorm_probs


def _draw(p):
    return torch.multinomial(p, 1).view(-1).to(torch.int32)


def top_k_top_p_sampling_from_probs(probs, top_k, top_p, *a, **k):
    return _draw(top_p_renorm_probs(top_k_renorm_probs(probs, top_k), top_p))


def min_p_sampling_from_probs(probs, min_p, *a, **k):
    p = probs.float()
    p = torch.where(p >= p.max(-1, keepdim=True).values * _col(min_p, p).float(), p, 0.0)
    return _draw(p / p.sum(-1, keepdim=True))
