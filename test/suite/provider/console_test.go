package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	openstackapi "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/ssm"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

const halfABoot = "[    0.0] Linux\n[   20.1] cloud-init[700]: autoscaler-agent: phase=start\n[   21.0] cloud-init[700]: autoscaler-agent: phase=download file=kubelet\n" +
	"[   29.0] cloud-init[700]: autoscaler-agent: phase=failed reason=checksum file=kubelet\n"

// TestConsoleOfEC2: the console of an instance is read over the wire, and says where its
// user data stopped.
func TestConsoleOfEC2(t *testing.T) {
	w := newWorld(t)
	g, _ := w.Group(string(providertest.Workers))
	id := g.Instances[0].ID
	w.Console(id, halfABoot)
	text, err := asg.ReadConsole(t.Context(), asg.Config{Region: w.Region(), Timeout: 10 * time.Second}, id)
	if err != nil || text != halfABoot {
		t.Fatalf("%q, %v", text, err)
	}
	if line := console.Diagnose(text, false).String(); !strings.Contains(line, "kubelet: a file is not the one") {
		t.Error(line)
	}
	if _, err := asg.ReadConsole(t.Context(), asg.Config{Region: w.Region(), Timeout: 10 * time.Second}, "i-00000000000000000"); err == nil || !strings.Contains(err.Error(), "i-00000000000000000") {
		t.Errorf("an instance that is not there: %v", err)
	}
}

// TestConsoleOfNova is the same of a server.
func TestConsoleOfNova(t *testing.T) {
	w := newNova(t, openstack.Options{})
	w.populate(t)
	server := w.RegionNamed("RegionOne").Servers()[0]
	w.Console(server.ID, strings.Repeat("noise\n", 2000)+halfABoot)
	text, err := nova.ReadConsole(t.Context(), openstackapi.Config{Timeout: await.Limit}, server.Region, server.ID)
	if err != nil || !strings.HasSuffix(text, halfABoot) || strings.Count(text, "noise") > 1000 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if _, err := nova.ReadConsole(t.Context(), openstackapi.Config{Timeout: await.Limit}, server.Region, "00000000-0000-0000-0000-000000000000"); err == nil || !strings.Contains(err.Error(), "no such server") {
		t.Errorf("a server that is not there: %v", err)
	}
}

// TestPublishAsParameter: join information is a SecureString that a worker reads as it reads
// the file, and is overwritten; an agent that may not write writes none.
func TestPublishAsParameter(t *testing.T) {
	w := newWorld(t)
	var refuses error
	permit := func(ctx context.Context) (context.Context, context.CancelFunc, error) {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, refuses
	}
	sink := ssm.New("/clusters/demo/join", "", w.Region(), permit)
	join := bootstrap.Join{Token: "asa000.0123456789abcdef", CAHashes: []string{"sha256:" + strings.Repeat("a", 64)}, Endpoint: "api:6443", Expires: time.Unix(2e9, 0), Kubernetes: "v1.36.3"}
	for version, token := range []string{join.Token, ""} {
		join.Token = token
		if err := sink.Publish(t.Context(), join); err != nil {
			t.Fatal(err)
		}
		value, got, ok := w.Parameter("/clusters/demo/join")
		read, lacks := bootstrap.ReadJoin([]byte(value))
		if !ok || got != version+1 || read.Token != token || len(lacks) != 0 || read.Endpoint != "api:6443" {
			t.Errorf("version %d: %v %v", got, read, lacks)
		}
	}
	refuses = errors.New("the Lease is another agent's")
	if err := sink.Publish(t.Context(), join); !errors.Is(err, refuses) {
		t.Errorf("without the right to write: %v", err)
	}
	calls := w.Calls(func(c aws.Call) bool { return c.Action == "PutParameter" })
	if len(calls) != 2 || calls[0].Params["Type"] != "SecureString" || calls[1].Params["Type"] != "SecureString" {
		t.Errorf("written by %v", calls)
	}
}
