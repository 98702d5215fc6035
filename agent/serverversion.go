package agent

import (
	"context"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// versionEvery is how often the API server is asked for its version: an upgrade takes minutes,
// and what follows from it hours.
const versionEvery = 5 * time.Minute

// versionWithin limits one question.
const versionWithin = 10 * time.Second

// followVersion tells the version of the API server until ctx ends. An API server that does not
// answer leaves the version as it was.
func followVersion(ctx context.Context, client *kube.Client, tell func(string)) {
	for {
		limited, cancel := context.WithTimeout(ctx, versionWithin)
		v, err := client.ServerVersion(limited)
		cancel()
		if err == nil {
			tell(v.GitVersion)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(versionEvery):
		}
	}
}
