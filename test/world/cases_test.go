package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
	"github.com/autoscaler-agent/autoscaler-agent/test/cases"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/wire"
)

// elsewhere are the cases that the models do not play, and what these lack.
var elsewhere = map[string]string{
	"a05-ds-vpa": "admission policies",
}

// TestCases plays the files of test/cases on the simulated cluster: each has to end as it does on the real API server, the real
// controllers and the real kube-scheduler (TestCases of test/cases, by the same file, by the same player).
func TestCases(t *testing.T) {
	load(t)
	files, err := filepath.Glob("../cases/cluster/*.yaml")
	if err != nil || len(files) < 24 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		c, err := cases.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			dir := dirOf(t)
			var out bytes.Buffer
			var faults []string
			synctest.Test(t, func(t *testing.T) { faults, err = playCase(t.Context(), dir, c, &out) })
			why, not := elsewhere[c.Name]
			switch wrong := err != nil || len(faults) > 0; {
			case wrong && !not:
				t.Errorf("%v %s\n%s", err, strings.Join(faults, "\n"), out.String())
			case !wrong && not:
				t.Errorf("it ends as it should: take it off the list (%s)", why)
			}
		})
	}
}

func playCase(ctx context.Context, dir string, c cases.Case, out io.Writer) (faults []string, err error) {
	defer setEnviron(os.Environ())
	w, err := New(Options{Dir: dir, Seed: 1, Agents: -1, controllers: true})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := (&Agent{world: w, name: "case", dir: dir}).prepare(); err != nil {
		return nil, err
	}
	hosts := map[string]wire.Far{apiHost: {Handler: w.API, Stream: w.API.Stream}}
	p := &product{world: w, wire: &wire.Wire{Latency: latency, Hosts: hosts}}
	table, err := cases.On(cases.Backend{Dir: dir, Command: p.command, Run: p.run,
		Config: &rest.Config{Host: "https://" + apiHost, BearerToken: "case", QPS: -1, WrapTransport: func(http.RoundTripper) http.RoundTripper { return p.wire }},
		Cloud: func(o aws.Options) (*aws.Cloud, error) {
			o.Unlistened = true
			cloud, err := aws.New(o)
			hosts["aws.invalid"] = wire.Far{Handler: cloud}
			return cloud, err
		}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = table.Close(ctx) }()
	return table.Play(ctx, c, out)
}

// product is the agent's commands in this process.
type product struct {
	world *World
	wire  *wire.Wire
}

// setEnviron gives the process an environment.
func setEnviron(env []string) {
	os.Clearenv()
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		_ = os.Setenv(name, value)
	}
}

// load is the configuration that a command reads from its environment, which the AWS SDK reads later.
func (p *product) load(env []string) (config.Config, error) {
	setEnviron(slices.Concat(env, []string{"AWS_ENDPOINT_URL=http://aws.invalid", "AUTOSCALER_LISTEN=off", "AUTOSCALER_SOCKET=off"}))
	cfg, err := config.Load()
	cfg.Transport, cfg.AWS.Transport, cfg.Dial = p.wire, p.wire, p.world.dial
	return cfg, err
}

func (p *product) command(ctx context.Context, env []string, args ...string) (out, log string, err error) {
	cfg, err := p.load(env)
	if err != nil {
		return "", "", err
	}
	var stdout, stderr bytes.Buffer
	if args[0] == "plan" {
		_, plan, err := oneshot.Plan(ctx, cfg, report.NewLogger("warning", &stderr))
		if err == nil {
			err = json.NewEncoder(&stdout).Encode(plan.Data())
		}
		return stdout.String(), stderr.String(), err
	}
	kind, name := args[len(args)-2], args[len(args)-1]
	found, err := oneshot.Explain(ctx, cfg, report.NewLogger("warning", &stderr), kind, name)
	if err == nil && !found.Found {
		err = fmt.Errorf("there is no %s %s", kind, name)
	}
	text.Explanation(&stdout, found)
	return stdout.String(), stderr.String(), err
}

func (p *product) run(ctx context.Context, env []string, log io.Writer) error {
	cfg, err := p.load(env)
	if err != nil {
		return err
	}
	lines := logrus.New()
	lines.SetOutput(log)
	return agent.Run(ctx, cfg, lines)
}
