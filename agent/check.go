package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/priorities"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
)

// Level is how grave a finding is.
type Level string

// The levels of a finding.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Finding is one line of `autoscaler-agent check`.
type Finding struct {
	Level  Level  `json:"level"`
	About  string `json:"about"` // "configuration", "kubeconfig", "rights", "cloud", "group NAME", ...
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Flatten takes a tree of joined errors apart.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, Flatten(e)...)
		}
		return out
	}
	return []error{err}
}

// checkLimit bounds each thing that is tried.
const checkLimit = 30 * time.Second

// Check tries everything that the agent needs and returns what it found, good and
// bad. offline leaves out what needs the network. It changes nothing, except that
// it writes and removes an empty file to see whether a directory is writable; what it
// asks the API server to write is a dry run.
func Check(ctx context.Context, cfg Config, loadErr error, offline bool) []Finding {
	var out []Finding
	add := func(level Level, about, text, remedy string) {
		out = append(out, Finding{Level: level, About: about, Text: text, Remedy: remedy})
	}
	for _, e := range Flatten(loadErr) {
		add(LevelError, "configuration", e.Error(), "")
	}
	if loadErr == nil {
		add(LevelOK, "configuration", fmt.Sprintf("%d variables known, none wrong", len(Variables())), "")
	}
	if cfg.StateDir == "" {
		return out // nothing was read, so there is nothing to look at
	}
	out = append(out, checkWritable("state directory", cfg.StateDir, Prefix+"_STATE_DIR")...)
	if cfg.Socket != "off" && cfg.Socket != "" && !offline {
		out = append(out, checkWritable("socket directory", filepath.Dir(cfg.Socket), Prefix+"_SOCKET")...)
	}
	out = append(out, checkGroupsFile(cfg)...)
	for _, f := range cfg.Parts.check() {
		if offline && f.Level == LevelError {
			f.Level = LevelWarning // one service's trouble does not keep the others from starting
		}
		out = append(out, f)
	}
	if offline {
		return out
	}
	out = append(out, checkKubernetes(ctx, cfg)...)
	for _, f := range checkCloud(ctx, cfg) {
		// A provider judges its own configuration once more.
		if loadErr == nil || !strings.Contains(loadErr.Error(), f.Text) {
			out = append(out, f)
		}
	}
	return out
}

func checkWritable(about, dir, variable string) []Finding {
	f, err := os.CreateTemp(dir, ".check-*")
	if errors.Is(err, os.ErrNotExist) {
		return []Finding{{Level: LevelWarning, About: about, Text: dir + " does not exist", Remedy: "systemd makes it for the unit; otherwise make it, or set " + variable}}
	}
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: err.Error(), Remedy: "make it writable for the agent's user, or set " + variable}}
	}
	err = errors.Join(f.Close(), os.Remove(f.Name()))
	if err != nil {
		return []Finding{{Level: LevelWarning, About: about, Text: err.Error()}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: dir + " is writable"}}
}

// right is one thing that the agent must be allowed to do.
type right struct{ verb, group, resource, sub, namespace, name string }

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.sub != "" {
		s += "/" + r.sub
	}
	if r.name != "" {
		s += " " + r.name
	}
	if r.namespace != "" {
		s += " in " + r.namespace
	}
	return s
}

// rights lists what the scaler needs; the services add their own.
func rights(cfg Config) []right {
	list := []right{
		{"list", "", "nodes", "", "", ""}, {"watch", "", "nodes", "", "", ""}, {"get", "", "nodes", "", "", ""}, {"update", "", "nodes", "", "", ""},
		{"list", "", "pods", "", "", ""}, {"watch", "", "pods", "", "", ""}, {"create", "", "pods", "eviction", "", ""},
		{"list", "apps", "daemonsets", "", "", ""}, {"watch", "apps", "daemonsets", "", "", ""},
		{"list", "apps", "replicasets", "", "", ""}, {"watch", "apps", "replicasets", "", "", ""},
		{"list", "apps", "statefulsets", "", "", ""}, {"watch", "apps", "statefulsets", "", "", ""},
		{"list", "batch", "jobs", "", "", ""}, {"watch", "batch", "jobs", "", "", ""},
		{"list", "policy", "poddisruptionbudgets", "", "", ""}, {"watch", "policy", "poddisruptionbudgets", "", "", ""},
		{"list", "", "namespaces", "", "", ""}, {"watch", "", "namespaces", "", "", ""},
		{"list", "", "persistentvolumeclaims", "", "", ""}, {"watch", "", "persistentvolumeclaims", "", "", ""},
		{"list", "", "persistentvolumes", "", "", ""}, {"watch", "", "persistentvolumes", "", "", ""},
		{"list", "storage.k8s.io", "csidrivers", "", "", ""}, {"watch", "storage.k8s.io", "csidrivers", "", "", ""},
		{"list", "storage.k8s.io", "csinodes", "", "", ""}, {"watch", "storage.k8s.io", "csinodes", "", "", ""},
		{"list", "storage.k8s.io", "storageclasses", "", "", ""}, {"watch", "storage.k8s.io", "storageclasses", "", "", ""},
		{"list", "storage.k8s.io", "volumeattachments", "", "", ""}, {"watch", "storage.k8s.io", "volumeattachments", "", "", ""},
		{"get", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, cfg.Lease.Name}, {"create", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, ""},
		{"update", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, cfg.Lease.Name},
		{"list", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, election.OtherLease}, {"watch", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, election.OtherLease},
		{"create", "", "events", "", "", ""},
	}
	if cfg.Scaler.Enabled && cfg.Scaler.StatusConfigMap {
		o := act.StatusObject
		list = append(list, right{"create", "", "configmaps", "", o.Namespace, ""}, right{"update", "", "configmaps", "", o.Namespace, o.Name}, right{"delete", "", "configmaps", "", o.Namespace, o.Name})
	}
	if plan.UsesPriorities(cfg.Scaling.Expander) {
		for _, verb := range []string{"list", "watch"} {
			list = append(list, right{verb, "", "configmaps", "", cfg.Lease.Namespace, priorities.ConfigMapName})
		}
	}
	return append(list, cfg.Parts.rights()...)
}

func checkKubernetes(ctx context.Context, cfg Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	path, err := cfg.KubeconfigPath(true)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error()}}
	}
	config, err := restConfig(cfg, true)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error()}}
	}
	client, _, err := newClients(cfg, config)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error(), Remedy: "mend the file or set " + Prefix + "_KUBECONFIG"}}
	}
	v, err := client.Discovery().ServerVersion()
	if err != nil {
		text, remedy := apierror.Explain(err)
		if remedy == "" {
			remedy = "see that the server named in " + path + " answers and takes its credentials"
		}
		return []Finding{{Level: LevelError, About: "API server", Text: text + ", by " + path, Remedy: remedy}}
	}
	out := []Finding{{Level: LevelOK, About: "API server", Text: v.GitVersion + " by " + path}}
	out = append(out, checkRights(ctx, cfg, client)...)
	out = append(out, checkCredential(ctx, cfg, client)...)
	out = append(out, checkJoin(ctx, cfg, client)...)
	out = append(out, checkProtected(ctx, cfg, client, config)...)
	lease, err := client.CoordinationV1().Leases(cfg.Lease.Namespace).Get(ctx, election.OtherLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		out = append(out, Finding{Level: LevelOK, About: "other autoscaler", Text: "none has a Lease"})
	case err != nil:
		out = append(out, Finding{Level: LevelWarning, About: "other autoscaler", Text: err.Error()})
	default:
		if why := election.OtherAtWork(cfg.Lease, lease); why != "" {
			out = append(out, Finding{Level: LevelError, About: "other autoscaler", Text: why})
		} else {
			out = append(out, Finding{Level: LevelOK, About: "other autoscaler", Text: "its Lease is no longer renewed"})
		}
	}
	return out
}

func checkRights(ctx context.Context, cfg Config, client kubernetes.Interface) []Finding {
	var missing []string
	list := rights(cfg)
	for _, r := range list {
		allowed, err := may(ctx, client, r)
		if err != nil {
			return []Finding{{Level: LevelError, About: "rights", Text: err.Error()}}
		}
		if !allowed {
			missing = append(missing, r.String())
		}
	}
	if len(missing) > 0 {
		return []Finding{{Level: LevelError, About: "rights", Text: "not allowed: " + strings.Join(missing, ", "), Remedy: "kubectl apply -f rbac.yaml"}}
	}
	return []Finding{{Level: LevelOK, About: "rights", Text: fmt.Sprintf("all %d are granted", len(list))}}
}

func may(ctx context.Context, client kubernetes.Interface, r right) (bool, error) {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.sub, Name: r.name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func checkCloud(ctx context.Context, cfg Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	file, err := readGroupsFile(cfg)
	if err != nil {
		return nil // checkGroupsFile has said so
	}
	cloud, err := cfg.Parts.provider(ctx, cfg, func(name string) json.RawMessage { return file.Clouds[name] })
	if err != nil {
		return []Finding{cloudFinding(err)}
	}
	groups, err := cloud.Groups(ctx)
	out := layFile(cfg, groups, err)
	for _, e := range Flatten(err) {
		out = append(out, cloudFinding(e))
	}
	out = append(out, checkProviders(cfg, groups, err)...)
	for _, g := range groups {
		out = append(out, checkGroup(g)...)
	}
	return out
}

// checkProviders finds providers that were read and have no node group; of several it
// also tells how many each has.
func checkProviders(cfg Config, groups []cluster.NodeGroup, err error) []Finding {
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

func checkGroup(g cluster.NodeGroup) []Finding {
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
	if len(out) == 0 {
		a := g.Template.Allocatable
		add(LevelOK, fmt.Sprintf("min %d, target %d, max %d; a machine offers %dm CPU, %d MiB, %d pods", g.Min, g.Target, g.Max, a.MilliCPU, a.Memory>>20, a.Pods), "")
	}
	return out
}
