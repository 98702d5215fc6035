package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// Fault is why no machine can join with what some user data holds, as far as that is seen from
// this machine. Text is one clause; it is empty where no fault is found.
type Fault struct {
	Text   string `json:"text,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Untried says why it is not known whether there is one.
	Untried string `json:"untried,omitempty"`
}

// TryUserData does with the values of rendered user data what Rehearse does with the published ones.
func TryUserData(ctx context.Context, h userdata.Held) ([]Step, Fault) {
	steps := rehearse(ctx, (&net.Dialer{Timeout: dialTimeout}).DialContext, Join{Endpoint: h.Join.Endpoint, Token: h.Join.Token, CAHashes: h.Join.CACertHashes}, h.KubernetesVersion)
	if len(steps) == 0 || steps[len(steps)-1].Err == nil {
		return steps, Fault{}
	}
	return steps, faultOf(steps[len(steps)-1], h)
}

const renderAnew = "render the user data anew (autoscaler-agent userdata render) and put it into the launch template or the group's file"

// faultOf says in one clause what the step that failed means for a machine.
func faultOf(s Step, h userdata.Held) Fault {
	id, _, _ := strings.Cut(h.Join.Token, ".")
	at := "the endpoint " + h.Join.Endpoint + " of its user data "
	var dns *net.DNSError
	var dial *net.OpError
	var other noAPIServer
	timeout := os.IsTimeout(s.Err) || errors.Is(s.Err, context.DeadlineExceeded)
	switch {
	case errors.As(s.Err, &dns):
		return Fault{Text: at + "does not resolve: DNS has no answer for " + dns.Name, Remedy: "AUTOSCALER_BOOTSTRAP_ENDPOINT; the zone of that name; " + renderAnew}
	case errors.Is(s.Err, syscall.ECONNREFUSED):
		return Fault{Text: at + "refuses the connection: no API server listens there", Remedy: "the port; the load balancer's listener; " + renderAnew}
	case errors.As(s.Err, &other):
		return Fault{Text: at + "leads to no API server: " + string(other), Remedy: "the port; the load balancer's listener and healthy members; " + renderAnew}
	case timeout && !(errors.As(s.Err, &dial) && dial.Op == "dial"):
		return Fault{Untried: "the API server is slow: " + s.What + " took longer than " + rehearsalTimeout.String()}
	case s.What == stepRead && timeout:
		return Fault{Text: at + "does not answer: something drops the packets on the way", Remedy: "security groups and routes; the load balancer's healthy members; " + renderAnew}
	case s.What == stepRead:
		return Fault{Text: at + "does not give cluster-info: " + s.Err.Error(), Remedy: renderAnew}
	case s.What == stepSignature && strings.Contains(s.Err.Error(), "is not signed with"):
		return Fault{Text: endedToken(id), Remedy: renderAnew}
	case s.What == stepSignature:
		return Fault{Text: "token " + id + " of its user data is of another cluster, or of an earlier time: its secret is not the one that cluster-info is signed with, or somebody changed cluster-info on its way", Remedy: renderAnew}
	case s.What == stepPin:
		return Fault{Text: "the pin in its user data is not that of the cluster's CA: it is of another cluster, or of an earlier CA", Remedy: renderAnew}
	case s.What == stepVersion:
		return Fault{Text: s.Err.Error(), Remedy: "userdata render --kubernetes-version with the API server's minor version"}
	case s.What == stepLogin:
		return Fault{Text: "the API server refuses token " + id + " of its user data: " + s.Err.Error(), Remedy: renderAnew}
	}
	return Fault{Text: "what its user data holds does not work: " + s.What + ": " + s.Err.Error(), Remedy: "autoscaler-agent check --join"}
}

// endedToken tells a token that cluster-info is not signed with: the agent's own IDs begin anew in each
// cluster, any other one may never have been of this cluster.
func endedToken(id string) string {
	if inPool(id) {
		return "token " + id + " of its user data has ended"
	}
	return "token " + id + " of its user data is none of this cluster: it is another cluster's, or has ended"
}

// compareVersions refuses what kubelets and kubeadm do not support: a worker that is newer than the
// API server, or more than three minor versions older (kubernetes.io, "Version Skew Policy").
func (r *rehearsal) compareVersions(context.Context) (string, error) {
	worker, err := version.ParseGeneric(r.worker)
	if err != nil {
		return "", fmt.Errorf("the version %s of its user data: %w", r.worker, err)
	}
	server, err := version.ParseGeneric(r.version)
	if err != nil {
		return "", fmt.Errorf("the version %s of the API server: %w", r.version, err)
	}
	switch ahead := int(worker.Minor()) - int(server.Minor()); {
	case ahead > 0:
		return "", fmt.Errorf("the Kubernetes version %s of its user data is newer than the API server's, %s: version skew", r.worker, r.version)
	case ahead < -3:
		return "", fmt.Errorf("the Kubernetes version %s of its user data is more than three minor versions older than the API server's, %s: version skew", r.worker, r.version)
	}
	return r.worker + " beside " + r.version, nil
}
