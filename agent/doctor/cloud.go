package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
)

func checkCloud(ctx context.Context, cfg config.Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	file, err := cfg.ReadGroupsFile()
	if err != nil {
		return nil // checkGroupsFile has said so
	}
	cfg = seeCluster(ctx, cfg)
	cloud, err := clients.Cloud(ctx, cfg, func(name string) json.RawMessage { return file.Clouds[name] })
	if err != nil {
		return []Finding{cloudFinding(err)}
	}
	groups, err := cloud.Groups(ctx)
	out := layFile(cfg, groups, err)
	for _, e := range config.Flatten(err) {
		out = append(out, cloudFinding(e))
	}
	out = append(out, checkProviders(cfg, groups, err)...)
	for _, g := range groups {
		if !g.Unmade() {
			out = append(out, Group(g)...)
		}
	}
	for _, p := range cluster.Pools(groups) {
		f := Finding{Level: LevelOK, About: "pool " + p.Name, Text: fmt.Sprintf("%d of at most %d machines; %d of its %d groups are made", p.Machines, p.Max, p.Made, p.Groups)}
		if p.Template != "" {
			f.Level, f.Text, f.Remedy = LevelError, "a template is not known: "+p.Template, "correct the pool in groups.yaml: its launch template, version and types"
		}
		out = append(out, f)
	}
	return append(out, behind(groups, cfg.Upgrades.Server())...)
}

// checkProviders finds providers that were read and have no node group; of several it
// also tells how many each has.
func checkProviders(cfg config.Config, groups []cluster.NodeGroup, err error) []Finding {
	names, _ := all.Split(cfg.Provider) // a wrong list is told as configuration
	if len(names) < 2 {
		if len(groups) == 0 && err == nil {
			return []Finding{{Level: LevelError, About: "cloud", Text: "no node group was found", Remedy: all.NoGroups(names...)}}
		}
		return nil
	}
	var out []Finding
	for _, name := range names {
		n := 0
		for _, g := range groups {
			if g.Provider == name {
				n++
			}
		}
		failed := slices.ContainsFunc(provider.Errors(err), func(e *provider.Error) bool {
			var d provider.Duplicate // its groups were found, and are left out for their names
			return e.Provider == name || errors.As(e, &d) && slices.Contains(d.Providers, name)
		})
		switch {
		case n > 0:
			out = append(out, Finding{Level: LevelOK, About: "provider " + name, Text: fmt.Sprintf("%d node groups", n)})
		case !failed: // what failed, or stands twice, has been told
			out = append(out, Finding{Level: LevelError, About: "provider " + name, Text: "no node group was found", Remedy: all.NoGroups(name)})
		}
	}
	return out
}

// cloudFinding tells an error of a provider with its remedy apart.
func cloudFinding(err error) Finding {
	f := Finding{Level: LevelError, About: "cloud", Text: err.Error()}
	var pe *provider.Error
	if errors.As(err, &pe) {
		if pe.Provider != "" {
			f.About, f.Text = "provider "+pe.Provider, strings.TrimPrefix(f.Text, pe.Provider+": ")
		}
		if pe.Group != "" {
			f.About = "group " + string(pe.Group)
		}
		if f.Remedy = pe.Remedy; f.Remedy != "" {
			f.Text = strings.TrimSpace(strings.TrimSuffix(f.Text, "("+pe.Remedy+")"))
		}
	}
	return f
}

// Group judges one node group by what the cloud says of it.
func Group(g cluster.NodeGroup) []Finding {
	var out []Finding
	add := func(level Level, text, remedy string) {
		out = append(out, Finding{Level: level, About: "group " + string(g.ID), Text: text, Remedy: remedy})
	}
	if g.Min > g.Max {
		add(LevelError, fmt.Sprintf("min %d is above max %d", g.Min, g.Max), "set a min that is at most max; until then nothing is grown or deleted in it")
	}
	if g.Stale != "" {
		add(LevelError, g.Stale, "")
	}
	if g.TemplateStale != "" && g.TemplateStale != g.Stale {
		add(LevelError, "its template cannot be read: "+g.TemplateStale, "until it can, the group is not grown")
	} else if g.Template.ByNodes {
		add(LevelWarning, "its template is not known: "+g.Template.Unknown, "until it is, the group is not grown")
	} else if g.Template.Unknown != "" {
		add(LevelError, "its template is not known: "+g.Template.Unknown, "until it is, the group is not grown")
	}
	for _, why := range []string{g.Paused, g.Busy, g.Keeps} {
		if why != "" {
			add(LevelWarning, why, "")
		}
	}
	if g.FailuresStale != "" {
		add(LevelWarning, "what could not be started is not known: "+g.FailuresStale, "")
	}
	for _, w := range g.Warnings {
		add(LevelWarning, w, "")
	}
	if len(g.Failures) > 0 {
		add(LevelWarning, fmt.Sprintf("the cloud could not start an instance: %s: %s", g.Failures[0].Cause, g.Failures[0].Text), "")
	}
	if g.Exposed != "" {
		add(LevelWarning, g.Exposed, `aws ec2 create-launch-template-version with --launch-template-data '{"MetadataOptions":{"HttpTokens":"required","HttpPutResponseHopLimit":1}}' and its --source-version`)
	}
	if len(out) == 0 {
		a := g.Template.Allocatable
		add(LevelOK, fmt.Sprintf("min %d, target %d, max %d; a machine offers %dm CPU, %d MiB, %d pods%s", g.Min, g.Target, g.Max, a.MilliCPU, a.Memory>>20, a.Pods, priceWords(&g)), "")
	}
	if text := drifted(&g); text != "" {
		add(LevelOK, text, fmt.Sprintf("autoscaler-agent nodes --group %s tells which, and in what", g.ID))
	}
	if zones := g.SpannedZones(nil); len(zones) > 0 {
		add(LevelOK, "it spans zones "+cluster.InWords(zones)+" and promises none of them", "a pod that needs one zone (a volume, a selector, a spread over zones) gets no machine of it: make one group for each zone for such pods")
	}
	return out
}

// priceWords say what a machine costs, and where that comes from.
func priceWords(g *cluster.NodeGroup) string {
	if g.Price <= 0 {
		return "; its price is not known"
	}
	return fmt.Sprintf(", and costs %.4g an hour (%s)", g.Price, g.PriceSource)
}

// drifted says how many machines of a group differ from what it would start today, and in what;
// empty: none does.
func drifted(g *cluster.NodeGroup) string {
	differ, by := g.Drifted()
	if differ == 0 {
		return ""
	}
	members := 0
	for i := range g.Instances {
		if g.Instances[i].Member {
			members++
		}
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, fmt.Sprintf("in %s %d", name, by[name]))
	}
	return fmt.Sprintf("%d of its %d machines differ from what it starts today: %s", differ, members, strings.Join(texts, ", "))
}
