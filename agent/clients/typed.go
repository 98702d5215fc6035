package clients

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// answerWithin bounds the wait of a person for an API server that may be away.
const answerWithin = 3 * time.Second

// Typed makes the client of a command that a person types. An API server that does not
// answer within three seconds is an error; one that refuses the credentials answers.
func Typed(ctx context.Context, c config.Config) (*rest.Config, *kube.Client, error) {
	cfg, err := Rest(c, true)
	if err != nil {
		return nil, nil, err
	}
	client, err := Services(cfg)
	if err != nil {
		return nil, nil, err
	}
	return cfg, client, Answers(ctx, cfg, client)
}

// Answers asks the API server for its version. The error names the server and the remedy.
func Answers(ctx context.Context, cfg *rest.Config, client *kube.Client) error {
	limited, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := client.REST.Get().AbsPath("/version").MaxRetries(0).Do(limited).Error()
	if err == nil || errors.IsUnauthorized(err) || errors.IsForbidden(err) {
		return nil // what is refused is told by the request that needs it
	}
	return fmt.Errorf("%s: %s", cfg.Host, apierror.Text(err))
}
