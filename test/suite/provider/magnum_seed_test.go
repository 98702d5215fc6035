package provider_test

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	shared "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestSeed000 plays what seed 000 (Magnum on Jetstream) tells, by its names: the cluster
// k8s, the [Global] section of /etc/kubernetes/cloud-config with its ca-file line, DefaultNodeGroup, nodes named
// minion, UPDATE_IN_PROGRESS and UPDATE_COMPLETE, removal where Heat has an index and the
// Node a machine ID, and credentials of a cluster that was made anew.
func TestSeed000(t *testing.T) {
	w := newSlowMagnum(t, openstack.MagnumCluster{NodeWord: "minion"}, 50*time.Millisecond)
	file := filepath.Join(t.TempDir(), "cloud-config")
	// "Also remove the line of ca-file": it may stay.
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca-bundle.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(password string) {
		text := "[Global]\nauth-url=" + w.AuthURL() + "\nuser-id=de30de30de304de38de3de30de30de30\npassword=" + password +
			"\ntenant-name=demo\ntenant-domain-id=default\nregion=RegionOne\nca-file=" + ca + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	connect := func() *magnum.Provider {
		session, err := shared.NewSession(shared.Config{CloudConfig: file, Timeout: await.Limit}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := magnum.New(magnum.Config{Cluster: k8s, Groups: []string{"1:3:DefaultNodeGroup"}, Heat: "auto", RemovesByName: "auto", Arch: "amd64"}, session, reservation)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	write(openstack.DemoPassword)
	p := connect()
	g := groups(t, p)[others]
	if g.Min != 1 || g.Max != 3 || g.Target != 1 || len(g.Instances) != 1 {
		t.Fatalf("DefaultNodeGroup: %+v", g)
	}
	// "Scale-up: setting group DefaultNodeGroup size to 2"
	if err := p.Resize(ctx, others, 1, 2); err != nil {
		t.Fatal(err)
	}
	w.taken()
	if m, _ := w.MagnumClusterNamed(k8s); m.Status != "UPDATE_IN_PROGRESS" && m.Status != "UPDATE_COMPLETE" {
		t.Errorf("status %s", m.Status)
	}
	w.settle(t)
	if m, _ := w.MagnumClusterNamed(k8s); m.Status != "UPDATE_COMPLETE" {
		t.Errorf("status %s", m.Status)
	}
	g = groups(t, p)[others]
	minion := regexp.MustCompile(`^k8s-[a-z0-9]{12}-minion-[01]$`)
	for _, in := range g.Instances {
		if !slices.ContainsFunc(in.NodeNames, minion.MatchString) {
			t.Errorf("names %v", in.NodeNames)
		}
	}
	// Scale-down by the machine ID, which has no dashes.
	victim := g.Instances[0].ID
	machineID := strings.ReplaceAll(uuidOf(victim), "-", "")
	n := cluster.Node{Name: "n", SystemUUID: strings.ToUpper(uuidOf(victim))}
	if got := cluster.Identify([]cluster.NodeGroup{g}, []*cluster.Node{&n}).Instance["n"]; got != victim {
		t.Errorf("a Node without a provider ID is taken for %q", got)
	}
	if err := p.Delete(ctx, others, cluster.InstanceID(machineID)); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if alive := w.Alive(others); len(alive) != 1 || slices.Contains(alive, victim) {
		t.Errorf("alive %v", alive)
	}
	// "If you redeploy the cluster and keep a older authentication"
	write("of the cluster before")
	_, err := connect().Groups(ctx)
	wantErr(t, err, provider.Denied, file)
	if strings.Contains(err.Error(), "of the cluster before") {
		t.Errorf("the password is in %v", err)
	}
	if err := os.Remove(ca); err != nil {
		t.Fatal(err)
	}
	_, err = shared.NewSession(shared.Config{CloudConfig: file, Timeout: await.Limit}, nil)
	wantErr(t, err, provider.Invalid, ca)
}
