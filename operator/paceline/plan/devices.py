"""Claimed devices, for both planners."""

WITHOUT_CLAIMS = (
    "accelerator.deviceClassName needs resource.k8s.io/v1, which Kubernetes serves from 1.34 on, and the right to list "
    "ResourceClaimTemplates; use accelerator.resourceName, or upgrade the cluster or the chart"
)
