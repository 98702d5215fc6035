package externalgrpc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	good := Config{Address: "plugin.example:8086", CertFile: "c", KeyFile: "k", CAFile: "a"}
	for what, c := range map[string]struct {
		change func(*Config)
		want   string // part of the error; "" is none
	}{
		"good":                {func(*Config) {}, ""},
		"IPv6":                {func(c *Config) { c.Address = "[::1]:8086" }, ""},
		"zone":                {func(c *Config) { c.Address = "[fe80::1%eth0]:8086" }, ""},
		"gRPC's own form":     {func(c *Config) { c.Address = "dns:///plugin.example:8086" }, ""},
		"own authorities":     {func(c *Config) { c.CAFile = "" }, ""},
		"plain on loopback":   {func(c *Config) { *c = Config{Address: "127.0.0.1:8086", Insecure: true} }, ""},
		"plain on localhost":  {func(c *Config) { *c = Config{Address: "localhost:8086", Insecure: true} }, ""},
		"plain on a socket":   {func(c *Config) { *c = Config{Address: "unix:///run/p.sock", Insecure: true} }, ""},
		"nothing":             {func(c *Config) { *c = Config{} }, "EXTERNALGRPC_ADDRESS"},
		"no port":             {func(c *Config) { c.Address = "plugin.example" }, "host:port"},
		"no certificate":      {func(c *Config) { c.CertFile, c.KeyFile = "", "" }, "EXTERNALGRPC_INSECURE=true"},
		"no key":              {func(c *Config) { c.KeyFile = "" }, "KEY_FILE"},
		"plain to elsewhere":  {func(c *Config) { *c = Config{Address: "192.0.2.1:8086", Insecure: true} }, "not on this machine"},
		"plain to a name":     {func(c *Config) { *c = Config{Address: "plugin.example:8086", Insecure: true} }, "not on this machine"},
		"plain and protected": {func(c *Config) { c.Address, c.Insecure = "127.0.0.1:1", true }, "keep one"},
		"TLS on a socket":     {func(c *Config) { c.Address = "unix:/run/p.sock" }, "INSECURE"},
		"timeout":             {func(c *Config) { c.Timeout = -time.Second }, "EXTERNALGRPC_TIMEOUT"},
		"no file":             {func(c *Config) { c.CloudConfig = "/none" }, "CLOUD_CONFIG"},
	} {
		config := good
		c.change(&config)
		err := config.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCloudConfig: every field of Cluster Autoscaler's file, and the variables before it.
func TestCloudConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud-config")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("address: \"svc.example:8086\"\nkey: /k\ncert: /c\ncacert: /ca\ngrpc_timeout: 7s\n")
	s, err := Config{CloudConfig: path}.settings()
	if err != nil || s.address != "svc.example:8086" || s.serverName != "svc.example" || s.key != "/k" || s.cert != "/c" || s.ca != "/ca" || s.timeout != 7*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = Config{CloudConfig: path, Address: "other.example:1", Timeout: time.Second}.settings()
	if err != nil || s.address != "other.example:1" || s.timeout != time.Second || s.cert != "/c" {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"address: a:1\ncert: /c\nkey: /k\ngrpc_timeout: soon": "grpc_timeout",
		"adress: a:1": "adress", "[": "cacert",
		"address: \"svc.example:8086\"": "CERT_FILE", // Cluster Autoscaler goes on without protection
	} {
		write(text)
		if err := (Config{CloudConfig: path}).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if s, err := (Config{Address: "a:1", CertFile: "c", KeyFile: "k"}).settings(); err != nil || s.timeout != defaultTimeout {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSection(t *testing.T) {
	list, err := readSection(json.RawMessage(`{"instances": [{"instance": "rack:///7", "node": "rack-7", "addresses": ["192.0.2.7", "2001:db8::7"], "created": "2026-01-02T03:04:05Z", "type": "metal", "zone": "a"}]}`))
	f := list["rack:///7"]
	if err != nil || f.nodeNames[0] != "rack-7" || len(f.addresses) != 2 || f.created.Year() != 2026 || f.typ != "metal" || f.zone != "a" {
		t.Errorf("%+v, %v", list, err)
	}
	for text, want := range map[string]string{
		`{"instances": [{"id": "a", "node": "a"}]}`:                    "write instance",
		`{"instances": [{"instance": "a", "nodeName": "a"}]}`:          "write node",
		`{"instances": [{"instance": "a", "node": "a", "zones": []}]}`: `no field "zones"`,
		`{"instances": "a"}`:             "a list of",
		`{"instances": [{"node": "a"}]}`: "instances[0].instance",
		`{"instances": [{"instance": "a", "node": "a"}, {"instance": "a", "node": "b"}]}`: "instances[1].instance",
		`{"instances": [{"instance": "a"}]}`:                                              "instances[0].node",
		`{"instances": [{"instance": "a", "node": "A"}]}`:                                 "lower case",
		`{"instances": [{"instance": "a", "node": "a", "addresses": ["here"]}]}`:          "instances[0].addresses",
		`{"machines": []}`: "machines",
		`[]`:               "instances",
	} {
		if err := Section(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := Section(nil); err != nil {
		t.Error(err)
	}
}
