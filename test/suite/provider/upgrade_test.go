package provider_test

import (
	"encoding/base64"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// following is a cluster whose control plane is upgraded while a test runs.
type following struct{ upgrade.Cluster }

func (f *following) follower() *upgrade.Follower {
	return upgrade.NewFollower(func() upgrade.Cluster { return f.Cluster })
}

// TestUpgradeOfALaunchTemplate: once each leader has the API server's version, the newest version of the launch template
// installs it, once; the machine that was there drifts by that, and groups that it does not reach say so.
func TestUpgradeOfALaunchTemplate(t *testing.T) {
	l := newLaunching(t, 3)
	k := &following{upgrade.Cluster{Mode: upgrade.Minor, Server: "v1.36.3", Leaders: []upgrade.Leader{{Name: "cp-1", Kubelet: "v1.36.3"}}}}
	var told []string
	l.sink.Follow(k.follower(), func(_, text string) { told = append(told, text) })
	tags := map[string]string{tagEnabled: "", tagCluster: ""}
	for name, version := range map[string]string{"joining": "$Latest", "pinned": "1"} {
		if err := l.PutGroup(aws.Group{Name: name, Max: 5, Desired: 1, LaunchTemplate: "joining", Version: version, Tags: tags}); err != nil {
			t.Fatal(err)
		}
	}
	l.settle(t)
	join := joinOf("asa000.0123456789abcdef")
	publish := func(want string) {
		t.Helper()
		if err := l.sink.Publish(t.Context(), join); err != nil {
			t.Fatal(err)
		}
		if numbers, _ := l.versions(t); numbers != want {
			t.Fatalf("versions %s, want %s", numbers, want)
		}
		if held, err := l.sink.Holds(t.Context(), join); err != nil || !held {
			t.Fatalf("it holds %t, %v", held, err)
		}
	}
	publish("2 1") // the join values; it installs 1.36.3 already
	group := func(published ...string) (cluster.NodeGroup, string) {
		t.Helper()
		p := l.connect(t, asg.Config{ClusterName: "demo"}, asg.WithUpgrades(k.follower(), published))
		list, err := p.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		warnings := ""
		for _, g := range list {
			if g.ID == "pinned" {
				warnings = strings.Join(g.Warnings, "; ")
			}
		}
		i := slices.IndexFunc(list, func(g cluster.NodeGroup) bool { return g.ID == "joining" })
		return list[i], warnings
	}
	k.Server = "v1.36.4"
	publish("2 1") // a patch
	k.Mode, k.Leaders[0].Kubelet = upgrade.Patch, "v1.36.3"
	publish("2 1") // its kubelet is not done
	if g, _ := group(l.id); !strings.Contains(strings.Join(g.Warnings, "; "), "the kubelet of cp-1 has v1.36.3") {
		t.Errorf("the group does not tell who is behind: %v", g.Warnings)
	}
	k.Leaders[0].Kubelet = "v1.36.4"
	if g, _ := group(); !strings.Contains(strings.Join(g.Warnings, "; "), "LAUNCH_TEMPLATES does not name its launch template "+l.id) {
		t.Errorf("the group does not tell that nobody publishes: %v", g.Warnings)
	}
	if held, err := l.sink.Holds(t.Context(), join); err != nil || held {
		t.Errorf("it holds %t, %v, before it was published", held, err)
	}
	l.Inject(aws.Fault{Kind: aws.AnswerLost, Action: "CreateLaunchTemplateVersion", Times: 1})
	_ = l.sink.Publish(t.Context(), join) // nobody knows what became of it
	publish("3 2 1")
	publish("3 2 1")
	if len(told) > 1 || !strings.Contains(l.log.String(), "v1.36.4") {
		t.Errorf("told %q; the journal:\n%s", told, l.log)
	}
	_, out := l.versions(t)
	text, err := base64.StdEncoding.DecodeString(sdk.ToString(out.LaunchTemplateVersions[0].LaunchTemplateData.UserData))
	if err != nil {
		t.Fatal(err)
	}
	if held, err := userdata.Read(text); err != nil || held.KubernetesVersion != "v1.36.4" || held.Join.Token != join.Token {
		t.Errorf("%+v, %v", held, err)
	}
	g, pinned := group(l.id)
	drift := g.Instances[0].Source.Differences(g.Template.Source)
	if !slices.ContainsFunc(drift, func(d cluster.Difference) bool {
		return d == cluster.Difference{Property: cluster.PropertyKubernetes, Is: "v1.36.3", Wanted: "v1.36.4"}
	}) || strings.Contains(strings.Join(g.Warnings, "; "), "user data") {
		t.Errorf("drift %v, warnings %v", drift, g.Warnings)
	}
	if !strings.Contains(pinned, "launches version 1 of its launch template: a new version reaches it when that is $Latest") {
		t.Errorf("the pinned group says %q", pinned)
	}
}

// TestUpgradeIsTheLeaders: a standby publishes nothing, and neither does anybody where the setting is off.
func TestUpgradeIsTheLeaders(t *testing.T) {
	for name, c := range map[string]struct {
		mode string
		gate error
	}{"a standby": {upgrade.Patch, os.ErrPermission}, "off": {upgrade.Off, nil}} {
		t.Run(name, func(t *testing.T) {
			l := newLaunching(t, 3)
			join := joinOf("asa000.0123456789abcdef")
			if err := l.sink.Publish(t.Context(), join); err != nil {
				t.Fatal(err)
			}
			k := &following{upgrade.Cluster{Mode: c.mode, Server: "v1.36.4"}}
			l.gate = c.gate
			err := l.sink.Follow(k.follower(), nil).Publish(t.Context(), join)
			if numbers, _ := l.versions(t); (err == nil) != (c.gate == nil) || numbers != "2 1" {
				t.Errorf("%v, versions %s", err, numbers)
			}
		})
	}
}

// TestUpgradeOnNova: servers are made with what is rendered of the group's file for the API server's version; those that
// were there drift by that and by nothing else; while a leader lags behind none does, and nothing is made before the
// version is known. The file stays as it is.
func TestUpgradeOnNova(t *testing.T) {
	w := newNova(t, openstack.Options{})
	file, err := userdata.Render(userdata.Spec{Cloud: "openstack", KubernetesVersion: "v1.35.2", Reservation: userdata.DefaultReservation(),
		Join: userdata.Join{Endpoint: "api:6443", Token: userdata.TokenPlaceholder, CACertHashes: []string{"sha256:" + strings.Repeat("b", 64)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.script, file, 0o600); err != nil {
		t.Fatal(err)
	}
	w.populate(t)
	k := &following{upgrade.Cluster{Mode: upgrade.Minor, Server: "v1.35.2"}}
	p := w.connect(t, nova.WithUpgrades(k.follower()))
	group := func() cluster.NodeGroup {
		t.Helper()
		list, err := p.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list[slices.IndexFunc(list, func(g cluster.NodeGroup) bool { return g.ID == providertest.Workers })]
	}
	grow := func() { // by one
		t.Helper()
		n := group().Target
		if err := p.Resize(t.Context(), providertest.Workers, n, n+1); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
	}
	drift := func() (by []string) {
		t.Helper()
		g := group()
		for _, in := range g.Instances {
			for _, d := range in.Source.Differences(g.Template.Source) {
				if d.Property == cluster.PropertyKubernetes || d.Property == cluster.PropertyUserData {
					by = append(by, d.String())
				}
			}
		}
		return by
	}
	grow()
	if by := drift(); len(by) > 0 {
		t.Errorf("before the upgrade: %v", by)
	}
	k.Server, k.Leaders = "v1.36.3", []upgrade.Leader{{Name: "cp-1", Kubelet: "v1.35.2"}}
	if by, g := drift(), group(); len(by) > 0 || !strings.Contains(strings.Join(g.Warnings, "; "), "the kubelet of cp-1 has v1.35.2") {
		t.Errorf("while a leader lags behind: %v, %v", by, g.Warnings)
	}
	k.Leaders[0].Kubelet = "v1.36.3"
	const old = 3
	if by := drift(); len(by) != old || !strings.HasPrefix(by[0], "Kubernetes version: v1.35.2, wanted v1.36.0|") {
		t.Errorf("after the upgrade: %v", by)
	}
	grow()
	made := w.newest(t)
	if held, err := userdata.Read(made); err != nil || held.KubernetesVersion != "v1.36.3" || held.PerServer {
		t.Errorf("the new server's user data: %+v, %v", held, err)
	}
	if by := drift(); len(by) != old {
		t.Errorf("with one new server: %v", by)
	}
	k.Server, k.Leaders[0].Kubelet = "v1.36.4", "v1.36.4" // a patch is followed by new servers alone
	if by := drift(); len(by) != old {
		t.Errorf("after a patch: %v", by)
	}
	k.Leaders[0].Kubelet = "v1.35.2" // a leader comes back with its old disk
	if by := drift(); len(by) > 0 {
		t.Errorf("newer servers go for a leader that lags behind: %v", by)
	}
	target := group().Target
	k.Server = ""
	if err := p.Resize(t.Context(), providertest.Workers, target, target+1); err == nil || !strings.Contains(err.Error(), "is not known yet") {
		t.Errorf("before the version is known: %v", err)
	}
	if now, err := os.ReadFile(w.script); err != nil || string(now) != string(file) {
		t.Error("the file was changed")
	}
}

// newest is the user data of the server that was made last.
func (w *novaWorld) newest(t *testing.T) []byte {
	t.Helper()
	var text []byte
	var at time.Time
	for _, s := range w.members(providertest.Workers) {
		if s.Created.After(at) {
			at, text = s.Created, s.UserData
		}
	}
	return text
}
