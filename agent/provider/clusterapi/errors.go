package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

const (
	remedyCredentials = "the management cluster does not accept these credentials: renew the kubeconfig (AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG, or AUTOSCALER_KUBECONFIG where it is one cluster)"
	remedyMissing     = "check that Cluster API is installed in the management cluster, and check AUTOSCALER_CLUSTERAPI_GROUP and AUTOSCALER_CLUSTERAPI_VERSION"
	remedyReach       = "check that this machine reaches the management cluster's API server: address, routes, certificate"
)

// classify turns the error of a call into a *provider.Error.
func classify(op string, group cluster.GroupID, err error) *provider.Error {
	e := &provider.Error{Op: op, Group: group, Kind: provider.Other, Err: err}
	var missing *capi.MissingError
	var torn *capi.TornError
	var netErr net.Error
	switch {
	case errors.As(err, &missing):
		e.Kind, e.Remedy = provider.NotFound, remedyMissing
	case errors.As(err, &torn):
		e.Kind = provider.Transient
	case errors.Is(err, context.Canceled):
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind = provider.Transient
	case apierrors.ReasonForError(err) != "" || capi.StatusCode(err) != 0:
		e.Kind, e.Remedy = kindOfStatus(err)
	case errors.As(err, &netErr):
		e.Kind, e.Remedy = provider.Transient, remedyReach
	case strings.Contains(err.Error(), "getting credentials") || strings.Contains(err.Error(), "x509:"):
		e.Kind, e.Remedy = provider.Denied, remedyCredentials
	}
	return e
}

func kindOfStatus(err error) (provider.Kind, string) {
	code, text := capi.StatusCode(err), err.Error()
	switch {
	case code == 401:
		return provider.Denied, remedyCredentials
	case code == 403 && strings.Contains(text, "exceeded quota"):
		return provider.Exhausted, ""
	case strings.Contains(text, "admission webhook"):
		return provider.Invalid, "an admission webhook of the management cluster refuses it"
	case code == 403:
		return provider.Denied, "allow it in the ClusterRole autoscaler-agent-clusterapi of the management cluster (units/rbac-clusterapi.yaml)"
	case code == 404:
		return provider.NotFound, ""
	case code == 409:
		return provider.Conflict, ""
	case code == 410, code == 408, code == 429, code >= 500:
		return provider.Transient, ""
	case code >= 400:
		return provider.Invalid, ""
	}
	return provider.Other, ""
}

// unsure marks the error of a write without an answer: the API server may still carry it
// out, though only under the resource version that was read.
func unsure(e *provider.Error, err error) *provider.Error {
	var called *capi.CallError
	var op *net.OpError
	code := capi.StatusCode(err)
	e.Unsure = errors.As(err, &called) && (code == 0 || code >= 500) && !(errors.As(err, &op) && op.Op == "dial")
	return e
}

func fail(op string, group cluster.GroupID, id cluster.InstanceID, kind provider.Kind, remedy, format string, args ...any) *provider.Error {
	return &provider.Error{Op: op, Group: group, Instance: id, Kind: kind, Remedy: remedy, Err: fmt.Errorf(format, args...)}
}
