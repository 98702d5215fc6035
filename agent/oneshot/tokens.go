package oneshot

import (
	"context"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// JoinToken is a join token without its secret.
type JoinToken = bootstrap.Listed

// JoinTokens lists the agent's tokens, and those of others that cluster-info is signed with.
func JoinTokens(ctx context.Context, cfg config.Config) ([]JoinToken, error) {
	client, err := ownClient(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return bootstrap.List(ctx, client, time.Now())
}

// CreateJoinToken makes a token for an operator; instance is a provider ID or "".
func CreateJoinToken(ctx context.Context, cfg config.Config, instance string, life time.Duration) (token string, expires time.Time, err error) {
	client, err := ownClient(ctx, cfg)
	if err != nil {
		return "", time.Time{}, err
	}
	b := cfg.Bootstrap
	b.TokenGroups = cfg.JoinGroups()
	return bootstrap.Create(ctx, client, b, instance, life)
}

// JudgeTokenLife refuses a life that CreateJoinToken takes for none.
func JudgeTokenLife(life time.Duration) error { return bootstrap.JudgeLife(life) }

// RevokeJoinToken deletes one of the agent's tokens.
func RevokeJoinToken(ctx context.Context, cfg config.Config, id string) error {
	client, err := ownClient(ctx, cfg)
	if err != nil {
		return err
	}
	return bootstrap.Revoke(ctx, client, id)
}

// ownClient is a client with the agent's own rights. It says within seconds that the API server
// is away.
func ownClient(ctx context.Context, cfg config.Config) (*kube.Client, error) {
	_, client, err := clients.Typed(ctx, cfg)
	return client, err
}
