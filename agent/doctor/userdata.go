package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// rehearseGroups tries what the user data of each group holds. Groups with equal user data are tried
// once.
func rehearseGroups(ctx context.Context, cfg config.Config) []Finding {
	file, err := cfg.ReadGroupsFile()
	if err != nil {
		return nil // checkGroupsFile has said so
	}
	section := func(name string) json.RawMessage { return file.Clouds[name] }
	cloud, err := clients.Cloud(ctx, cfg, section)
	if err != nil {
		return nil // checkCloud has said so
	}
	groups, _ := cloud.Groups(ctx) // so it has of those that were not read
	var out []Finding
	tried := map[string]Finding{}
	for i := range groups {
		g := &groups[i]
		about := "user data of " + string(g.ID)
		text, from, err := clients.UserData(ctx, cfg, section, g, "")
		switch {
		case errors.Is(err, clients.ErrNoUserData):
			continue
		case err != nil:
			out = append(out, Finding{Level: LevelWarning, About: about, Text: err.Error()})
			continue
		}
		f, ok := tried[string(text)]
		if !ok {
			f = tryUserData(ctx, text, from)
			tried[string(text)] = f
		}
		f.About = about
		out = append(out, f)
	}
	return out
}

func tryUserData(ctx context.Context, text []byte, from string) Finding {
	held, err := userdata.Read(text)
	if err != nil {
		return Finding{Level: LevelWarning, Text: from + " was not tried: " + strings.TrimPrefix(err.Error(), "userdata: "), Remedy: "autoscaler-agent userdata lint"}
	}
	_, fault := bootstrap.TryUserData(ctx, held)
	id, _, _ := strings.Cut(held.Join.Token, ".")
	with := fmt.Sprintf("%s: endpoint %s, Kubernetes %s", from, held.Join.Endpoint, held.KubernetesVersion)
	if id != "" {
		with += ", token " + id
	}
	if fault.Untried != "" {
		return Finding{Level: LevelWarning, Text: with + " was not tried to the end: " + fault.Untried, Remedy: "try again"}
	}
	if fault.Text == "" {
		return Finding{Level: LevelOK, Text: with + ": a machine could join from here"}
	}
	return Finding{Level: LevelError, Text: from + ": " + fault.Text, Remedy: fault.Remedy}
}
