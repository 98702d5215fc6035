package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	provider "github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
)

var _ = register("externalgrpc", newExternalGRPC)

// externalGRPC is a plug-in of Cluster Autoscaler's protocol in front of the emulated
// AWS: the agent has no word with AWS, and the plug-in knows the agent by its
// certificate.
type externalGRPC struct {
	asg
	server *plugin.Server
	env    []string
}

func newExternalGRPC(ctx context.Context, w *World) (Cloud, error) {
	behind, err := newASG(ctx, w)
	if err != nil {
		return nil, err
	}
	c := externalGRPC{asg: behind.(asg)}
	if err := c.start(ctx, filepath.Join(w.Dir, "plugin")); err != nil {
		c.Cloud.Close()
		return nil, fmt.Errorf("start the plug-in: %w", err)
	}
	return c, nil
}

// InjectPlugIn lets calls of the plug-in fail until stop is called.
func (c externalGRPC) InjectPlugIn(f plugin.Fault) (stop func()) { return c.server.Inject(f) }

// start starts the plug-in. It keeps back nothing of a machine, so the agent works out
// what is allocatable.
func (c *externalGRPC) start(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var cloud *provider.Provider
	err := withEnv(c.Cloud.Env(), func() (err error) {
		cloud, err = provider.New(ctx, provider.Config{ClusterName: ClusterName, VMMemoryOverheadPercent: 7.5, Timeout: 10 * time.Second}, cluster.Reservation{MaxPods: 110})
		return err
	})
	if err != nil {
		return err
	}
	ca, err := plugin.NewAuthority(dir)
	if err != nil {
		return err
	}
	config, err := ca.Server()
	if err != nil {
		return err
	}
	cert, key, err := ca.Issue("agent", time.Now().Add(24*time.Hour))
	if err != nil {
		return err
	}
	if c.server, err = plugin.Start(plugin.Options{Cloud: cloud, TLS: config}); err != nil {
		return err
	}
	for name, value := range map[string]string{"ADDRESS": c.server.Address(), "CERT_FILE": cert, "KEY_FILE": key, "CA_FILE": ca.File()} {
		c.env = append(c.env, "AUTOSCALER_EXTERNALGRPC_"+name+"="+value)
	}
	return nil
}

// environment is changed by one world at a time: AWS's SDK has no other way to be told
// everything that Env tells an agent.
var environment sync.Mutex

// withEnv runs f with variables in this process's environment, and puts back what was
// there.
func withEnv(vars []string, f func() error) error {
	environment.Lock()
	defer environment.Unlock()
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		before, had := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		defer func() {
			if had {
				_ = os.Setenv(name, before) // it could be set a moment ago
			} else {
				_ = os.Unsetenv(name)
			}
		}()
	}
	return f()
}

func (c externalGRPC) Banner() string {
	return fmt.Sprintf("a plug-in answers at %s, by mutual TLS; behind it %s", c.server.Address(), c.asg.Banner())
}

func (c externalGRPC) Env() []string          { return c.env }
func (c externalGRPC) Counts() map[string]int { return c.server.Counts() }

func (c externalGRPC) Raises() []Raise {
	var out []Raise
	for _, at := range c.server.Raises() {
		out = append(out, Raise{At: at, What: "NodeGroupIncreaseSize"})
	}
	return out
}

func (c externalGRPC) Close() error {
	c.server.Close()
	return c.asg.Close()
}
