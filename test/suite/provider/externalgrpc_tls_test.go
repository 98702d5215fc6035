package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
)

// authority is one of a test.
type authority struct{ *plugin.Authority }

func newAuthority(t testing.TB) authority {
	t.Helper()
	a, err := plugin.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return authority{a}
}

func (a authority) issue(t testing.TB, name string, until time.Time) (cert, key string) {
	t.Helper()
	cert, key, err := a.Issue(name, until)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// TestExternalGRPCMutualTLS: each side's wrong or expired certificate is told with a
// remedy, and a renewed file is used without a restart.
func TestExternalGRPCMutualTLS(t *testing.T) {
	soon, ca, strangers := time.Now().Add(time.Hour), newAuthority(t), newAuthority(t)
	config, err := ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	w := newPlugin(t, plugin.Options{TLS: config})
	cert, key := ca.issue(t, "agent", soon)
	foreignCert, foreignKey := strangers.issue(t, "agent", soon)
	oldCert, oldKey := ca.issue(t, "old", time.Now().Add(-time.Minute))
	caFile, foreignCA := ca.File(), strangers.File()
	good := externalgrpc.Config{Address: w.server.Address(), CertFile: cert, KeyFile: key, CAFile: caFile}
	for what, c := range map[string]struct {
		change func(*externalgrpc.Config)
		remedy string // "" is success
	}{
		"good":                   {func(*externalgrpc.Config) {}, ""},
		"server name":            {func(c *externalgrpc.Config) { c.ServerName = "plugin.test" }, ""},
		"another server name":    {func(c *externalgrpc.Config) { c.ServerName = "elsewhere.test" }, "SERVER_NAME"},
		"foreign authority":      {func(c *externalgrpc.Config) { c.CAFile = foreignCA }, "CA_FILE"},
		"foreign certificate":    {func(c *externalgrpc.Config) { c.CertFile, c.KeyFile = foreignCert, foreignKey }, "CERT_FILE"},
		"expired certificate":    {func(c *externalgrpc.Config) { c.CertFile, c.KeyFile = oldCert, oldKey }, "CERT_FILE"},
		"key of another":         {func(c *externalgrpc.Config) { c.KeyFile = foreignKey }, "KEY_FILE"},
		"file that is not there": {func(c *externalgrpc.Config) { c.CAFile = caFile + "-none" }, "CA_FILE"},
	} {
		t.Run(what, func(t *testing.T) {
			config := good
			c.change(&config)
			groups, err := readPlugin(t, connectPlugin(t, config))
			if c.remedy == "" {
				if err != nil || len(groups) != 2 {
					t.Errorf("%d groups, %v", len(groups), err)
				}
				return
			}
			list := provider.Errors(err)
			if len(groups) > 0 || len(list) != 1 || list[0].Kind != provider.Denied || !strings.Contains(list[0].Remedy, c.remedy) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("renewed file", func(t *testing.T) {
		config := good
		config.CertFile, config.KeyFile = oldCert, oldKey
		p := connectPlugin(t, config)
		if _, err := readPlugin(t, p); provider.KindOf(err) != provider.Denied {
			t.Fatalf("%v", err)
		}
		ca.issue(t, "old", soon)
		if groups, err := readPlugin(t, p); err != nil || len(groups) != 2 {
			t.Errorf("%d groups, %v", len(groups), err)
		}
	})
	t.Run("no TLS at a plug-in with TLS", func(t *testing.T) {
		p := connectPlugin(t, externalgrpc.Config{Address: w.server.Address(), Insecure: true})
		if _, err := readPlugin(t, p); provider.KindOf(err) != provider.Denied {
			t.Errorf("%v", err)
		}
	})
	t.Run("TLS at a plug-in without", func(t *testing.T) {
		config := good
		config.Address = newPlugin(t, plugin.Options{}).server.Address()
		_, err := readPlugin(t, connectPlugin(t, config))
		if list := provider.Errors(err); len(list) != 1 || !strings.Contains(list[0].Remedy, "INSECURE") {
			t.Errorf("%v", err)
		}
	})
	t.Run("Cluster Autoscaler's file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "cloud-config")
		text := fmt.Sprintf("address: %q\nkey: %q\ncert: %q\ncacert: %q\ngrpc_timeout: 3s\n", w.server.Address(), key, cert, caFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if groups, err := readPlugin(t, connectPlugin(t, externalgrpc.Config{CloudConfig: path})); err != nil || len(groups) != 2 {
			t.Errorf("%d groups, %v", len(groups), err)
		}
	})
}

// TestExternalGRPCPlainToTheWrongServer: one that speaks TLS, and one that is no gRPC
// server. The words name the cause, and what to change.
func TestExternalGRPCPlainToTheWrongServer(t *testing.T) {
	one := httptest.NewServer(http.NotFoundHandler())
	defer one.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	authority, err := plugin.NewAuthority(t.TempDir())
	must(t, err)
	mutual, err := authority.Server()
	must(t, err)
	w := newPlugin(t, plugin.Options{TLS: mutual})
	for name, c := range map[string]struct {
		address string
		want    []string
	}{
		"HTTP/1":             {one.Listener.Addr().String(), []string{"speaks HTTP/1", "AUTOSCALER_EXTERNALGRPC_ADDRESS"}},
		"TLS":                {secure.Listener.Addr().String(), []string{"speaks TLS", "AUTOSCALER_EXTERNALGRPC_CERT_FILE"}},
		"a plug-in with TLS": {w.server.Address(), []string{"speaks TLS", "AUTOSCALER_EXTERNALGRPC_INSECURE"}},
	} {
		p := connectPlugin(t, externalgrpc.Config{Address: c.address, Insecure: true, Timeout: 5 * time.Second})
		for range 3 { // the words of the first attempt, and of those that find the connection broken
			_, err := p.Groups(ctx)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) || provider.KindOf(err) != provider.Denied {
					t.Errorf("%s: %v, want %q", name, err, want)
				}
			}
		}
	}
}
