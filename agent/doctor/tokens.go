package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// checkTokens names the tokens of others, by which machines join past the agent.
func checkTokens(ctx context.Context, cfg config.Config, client *kube.Client) []Finding {
	if !cfg.Bootstrap.Enabled {
		return nil
	}
	const about = "join tokens"
	list, err := bootstrap.List(ctx, client, time.Now())
	if err != nil {
		return []Finding{unasked(LevelWarning, about, "", err)}
	}
	var out []Finding
	var unread []string
	own := 0
	for _, t := range list {
		switch {
		case t.For != "others" && t.Problem == "":
			own++
		case t.For == "others" && t.Problem == bootstrap.NeverExpires:
			out = append(out, Finding{Level: LevelWarning, About: about, Text: fmt.Sprintf("token %s is not the agent's and never expires: whoever has it can join machines for ever", t.ID),
				Remedy: "kubeadm token delete " + t.ID})
		case t.For == "others" && t.Expires.IsZero():
			unread = append(unread, t.ID)
		}
	}
	text := fmt.Sprintf("%d of the agent's live", own)
	if len(unread) > 0 {
		text += fmt.Sprintf("; %s of others sign cluster-info, and when they expire may not be read (kubeadm token list)", strings.Join(unread, ", "))
	}
	return append(out, Finding{Level: LevelOK, About: about, Text: text})
}
