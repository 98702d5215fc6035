package clients

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// Rest reads the kubeconfig, or the pod's own account where there is none and
// the process runs in a pod. typed says that a person typed the command.
func Rest(c config.Config, typed bool) (*rest.Config, error) {
	path, err := c.KubeconfigPath(typed)
	var cfg *rest.Config
	switch {
	case err == nil:
		cfg, err = fromFile(path)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w (correct the file, or set %s_KUBECONFIG to another)", path, err, config.Prefix)
		}
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		inCluster, inErr := rest.InClusterConfig()
		if inErr != nil {
			return nil, errors.Join(err, inErr)
		}
		cfg = inCluster
	default:
		return nil, err
	}
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	cfg.UserAgent = "autoscaler-agent/" + version.Current()
	cfg.QPS, cfg.Burst = 100, 200 // evictions come in bursts; watches are not counted
	cfg.WarningHandler = rest.NoWarnings{}
	if c.Transport != nil {
		cfg.Wrap(func(http.RoundTripper) http.RoundTripper { return c.Transport })
	}
	cfg.Dial = c.Dial
	return cfg, nil
}

// Services makes the client of the services and of the commands.
func Services(cfg *rest.Config) (*kube.Client, error) { return kube.New(cfg) }

// Lease makes the client of the Lease alone, which no burst of evictions may hold up.
func Lease(c election.Config, cfg *rest.Config) (*kube.Client, error) {
	own := rest.CopyConfig(cfg)
	own.Timeout = c.RenewDeadline / 2
	own.QPS, own.Burst = 10, 10
	return kube.New(own)
}

// approvals makes the client that approves certificates: a burst of three hundred machines
// that join is some thousand calls, which no eviction may hold up, nor they it.
func approvals(cfg *rest.Config) (*kube.Client, error) {
	own := rest.CopyConfig(cfg)
	own.QPS, own.Burst = 200, 400
	return kube.New(own)
}

// Recorder makes the event recorder of all services. Events are best effort: those
// that cannot be sent are dropped after client-go's own attempts. They trickle through
// a client of their own, so that a burst of them never stands before an eviction and
// does not keep the API server busy while it binds the pods of the same burst.
func Recorder(cfg *rest.Config, host string) (record.EventRecorder, func(), error) {
	own := rest.CopyConfig(cfg)
	own.QPS, own.Burst = 20, 20
	client, err := kube.New(own)
	if err != nil {
		return nil, nil, err
	}
	b := record.NewBroadcaster(record.WithSleepDuration(2 * time.Second))
	b.StartRecordingToSink(kube.EventSink{Client: client})
	return b.NewRecorder(kube.Scheme, corev1.EventSource{Component: "autoscaler-agent", Host: host}), b.Shutdown, nil
}
