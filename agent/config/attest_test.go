package config

import (
	"strings"
	"testing"
)

// TestAttestNeedsOtherSettings: the attest listener works on AWS, beside bootstrap and a
// closed join, and takes its region from the provider.
func TestAttestNeedsOtherSettings(t *testing.T) {
	good := map[string]string{"AUTOSCALER_AWS_CLUSTER_NAME": "demo", "AUTOSCALER_AWS_REGION": "eu-west-1", "AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN": ":6444",
		"AUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT": "123456789012", "AUTOSCALER_BOOTSTRAP_ATTEST_ROLES": "worker,gpu"}
	for name, c := range map[string]struct{ variable, value, want string }{
		"all is set":         {"AUTOSCALER_PROVIDER", "aws", ""},
		"its own region":     {"AUTOSCALER_BOOTSTRAP_ATTEST_REGION", "us-gov-west-1", ""},
		"no region":          {"AUTOSCALER_AWS_REGION", "", "AUTOSCALER_BOOTSTRAP_ATTEST_REGION"},
		"no region's name":   {"AUTOSCALER_BOOTSTRAP_ATTEST_REGION", "evil.example/", "AUTOSCALER_BOOTSTRAP_ATTEST_REGION"},
		"no account":         {"AUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT", "12345", "twelve digits"},
		"no role":            {"AUTOSCALER_BOOTSTRAP_ATTEST_ROLES", "", "AUTOSCALER_BOOTSTRAP_ATTEST_ROLES"},
		"an ARN for a role":  {"AUTOSCALER_BOOTSTRAP_ATTEST_ROLES", "arn:aws:iam::123456789012:role/worker", "not its ARN"},
		"no port":            {"AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN", "leader", ":6444"},
		"another cloud":      {"AUTOSCALER_PROVIDER", "nova", "only machines on AWS"},
		"an open join":       {"AUTOSCALER_CSR_JOIN", "open", "AUTOSCALER_CSR_JOIN=closed"},
		"without bootstrap":  {"AUTOSCALER_BOOTSTRAP_ENABLED", "false", "set AUTOSCALER_BOOTSTRAP_ENABLED=true"},
		"a relative path":    {"AUTOSCALER_BOOTSTRAP_ATTEST_CERT_FILE", "attest.crt", "absolute path"},
		"no time":            {"AUTOSCALER_BOOTSTRAP_ATTEST_WINDOW", "1s", "from 1m to"},
		"an unknown mode":    {"AUTOSCALER_BOOTSTRAP_TOKENS", "always", "use standing, growth or none"},
		"a bare parameter":   {"AUTOSCALER_BOOTSTRAP_SSM_PARAMETER", "join", "begins with a slash"},
		"a reserved one":     {"AUTOSCALER_BOOTSTRAP_SSM_PARAMETER", "/aws/join", "begins with a slash"},
		"a good parameter":   {"AUTOSCALER_BOOTSTRAP_SSM_PARAMETER", "/clusters/demo/join", ""},
		"a template's name":  {"AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES", "workers", "lt-0123456789abcdef0"},
		"templates":          {"AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES", "lt-0123456789abcdef0,lt-0a1b2c3d", ""},
		"a Secret":           {"AUTOSCALER_BOOTSTRAP_SECRET", "true", ""},
		"on demand":          {"AUTOSCALER_BOOTSTRAP_TOKENS", "growth", ""},
		"only for attesting": {"AUTOSCALER_BOOTSTRAP_TOKENS", "none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range good {
				t.Setenv(k, v)
			}
			t.Setenv(c.variable, c.value)
			_, err := Load()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLaunchTemplatesWantAStandingToken: a machine has the user data of its launch.
func TestLaunchTemplatesWantAStandingToken(t *testing.T) {
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	t.Setenv("AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES", "lt-0123456789abcdef0")
	for mode, want := range map[string]bool{"standing": true, "growth": false, "none": false} {
		t.Setenv("AUTOSCALER_BOOTSTRAP_TOKENS", mode)
		if _, err := Load(); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "use standing") {
			t.Errorf("%s: %v", mode, err)
		}
	}
	t.Setenv("AUTOSCALER_BOOTSTRAP_TOKENS", "standing")
	t.Setenv("AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATE_KEEP", "0")
	if _, err := Load(); err == nil || !strings.Contains(err.Error(), "from 1 to 100") {
		t.Error(err)
	}
}
