package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
)

// Rehearsal does with the published values, and with what the user data of each group holds, what a
// machine that joins does with them. It writes nothing: the request for a certificate is a dry run.
func Rehearsal(ctx context.Context, cfg config.Config) []Finding {
	return append(rehearsePublished(ctx, cfg), rehearseGroups(ctx, cfg)...)
}

func rehearsePublished(ctx context.Context, cfg config.Config) []Finding {
	const about = "rehearsed join"
	b := cfg.Bootstrap
	if !b.Enabled || b.File == "" {
		return []Finding{{Level: LevelWarning, About: about, Text: "nothing is published to a file", Remedy: "set " + config.Prefix + "_BOOTSTRAP_FILE"}}
	}
	data, err := os.ReadFile(b.File)
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: "the published values cannot be read: " + err.Error(), Remedy: "run it as root or as the agent's user, once the agent has published"}}
	}
	join, lacks := bootstrap.ReadJoin(data)
	var out []Finding
	for _, l := range lacks {
		out = append(out, Finding{Level: LevelWarning, About: about, Text: b.File + ": " + l, Remedy: "let the agent publish it (" + config.Prefix + "_BOOTSTRAP_FILE)"})
	}
	if !join.Expires.IsZero() && time.Now().After(join.Expires) {
		return append(out, Finding{Level: LevelError, About: about, Text: fmt.Sprintf("the published token ended at %s", join.Expires.UTC().Format(time.RFC3339)), Remedy: "journalctl -t autoscaler-agent says why it is not renewed"})
	}
	for n, step := range bootstrap.Rehearse(ctx, join) {
		if step.Err != nil {
			return append(out, Finding{Level: LevelError, About: about, Text: fmt.Sprintf("step %d, %s: %v", n+1, step.What, step.Err), Remedy: "no machine can join before this is mended"})
		}
		out = append(out, Finding{Level: LevelOK, About: about, Text: fmt.Sprintf("%s: %s", step.What, step.Said)})
	}
	if join.Token == "" && b.Tokens != bootstrap.TokensStanding {
		out = append(out, Finding{Level: LevelOK, About: about, Text: "there is no token now: one is made when machines come (" + config.Prefix + "_BOOTSTRAP_TOKENS" + "=" + b.Tokens + ")"})
	}
	return out
}
