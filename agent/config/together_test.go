package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesAreToldTogether: no mistake hides another one, and one mistake is told once.
func TestMistakesAreToldTogether(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		file string
		want []string
	}{
		"foreign variable": {map[string]string{"AUTOSCALER_OF_ANOTHER_PROGRAM": "1"}, "AUTOSCALER_LISTEN=nowhere\nAUTOSCALER_SCALING_UNNEEDED_FOR=10\n",
			[]string{"AUTOSCALER_OF_ANOTHER_PROGRAM is not a variable", "AUTOSCALER_LISTEN is", "AUTOSCALER_SCALING_UNNEEDED_FOR is"}},
		"line and value":   {nil, "AUTOSCALER_LOG_LEVEL: loud\nAUTOSCALER_LISTEN=nowhere\n", []string{":1: systemd ignores", "AUTOSCALER_LISTEN is"}},
		"misspelt, needed": {nil, "autoscaler_aws_cluster_name=demo\nAUTOSCALER_LISTEN=nowhere\n", []string{"did you mean AUTOSCALER_AWS_CLUSTER_NAME?", "AUTOSCALER_LISTEN is"}},
		"flag and value":   {nil, "--estimator=binpacking\nAUTOSCALER_LISTEN=nowhere\n", []string{"--estimator is Cluster Autoscaler's", "AUTOSCALER_LISTEN is"}},
		"flag as variable": {map[string]string{"AUTOSCALER_ESTIMATOR": "x"}, "AUTOSCALER_ESTIMATOR=x\nAUTOSCALER_LISTEN=nowhere\n", []string{"AUTOSCALER_ESTIMATOR is Cluster Autoscaler's", "AUTOSCALER_LISTEN is"}},
		"open quote":       {nil, "AUTOSCALER_LOG_LEVEL=loud\nAUTOSCALER_SOCKET=\"/run/x\nAUTOSCALER_LISTEN=nowhere\n", []string{"AUTOSCALER_SOCKET holds a line break", "AUTOSCALER_LOG_LEVEL is"}},
		"control":          {nil, "AUTOSCALER_NODE_NAME=\x1b[31m\nAUTOSCALER_LISTEN=nowhere\n", []string{"AUTOSCALER_NODE_NAME holds a control character", "AUTOSCALER_LISTEN is"}},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			for _, v := range []string{"LISTEN", "SCALING_UNNEEDED_FOR", "AWS_CLUSTER_NAME", "LOG_LEVEL", "SOCKET", "NODE_NAME"} { // what the file sets is put back
				t.Setenv("AUTOSCALER_"+v, "")
				_ = os.Unsetenv("AUTOSCALER_" + v) // it is set
			}
			if name != "misspelt, needed" {
				t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
			}
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			path := filepath.Join(t.TempDir(), "agent.env")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadWith(path)
			list := Flatten(err)
			if len(list) != len(c.want) {
				t.Errorf("%d mistakes, want %d: %v", len(list), len(c.want), err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not told: %v", want, err)
				}
			}
		})
	}
}

// TestFilesAreToldTogether: a wrong setting hides no mistake of groups.yaml.
func TestFilesAreToldTogether(t *testing.T) {
	clean(t)
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	t.Setenv("AUTOSCALER_OF_ANOTHER_PROGRAM", "1")
	file := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(file, []byte("groups: {a: {prise: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AUTOSCALER_GROUPS_FILE", file)
	c, err := Load()
	if err == nil {
		t.Fatal("the foreign variable is taken")
	}
	if err := c.CheckFiles(); err == nil || !strings.Contains(err.Error(), "did you mean price?") {
		t.Errorf("groups.yaml: %v", err)
	}
}
