package asg

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// process reads a configuration as the agent does.
func process(t *testing.T, env map[string]string) (Config, error) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	var c struct{ AWS Config }
	if err := envconfig.Process("AUTOSCALER", &c); err != nil {
		return c.AWS, err
	}
	if err := envconfig.CheckDisallowed("AUTOSCALER", &c); err != nil {
		return c.AWS, err
	}
	return c.AWS, c.AWS.Validate()
}

func TestConfigFromTheEnvironment(t *testing.T) {
	c, err := process(t, map[string]string{
		"AUTOSCALER_AWS_REGION":                     "eu-west-1",
		"AUTOSCALER_AWS_CLUSTER_NAME":               "demo",
		"AUTOSCALER_AWS_AUTO_DISCOVERY":             "asg:tag=a,b=c;asg:tag=d",
		"AUTOSCALER_AWS_GROUPS":                     "one,0:5:two",
		"AUTOSCALER_AWS_VM_MEMORY_OVERHEAD_PERCENT": "5",
		"AUTOSCALER_AWS_TIMEOUT":                    "3s",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Region != "eu-west-1" || c.ClusterName != "demo" || c.VMMemoryOverheadPercent != 5 || c.Timeout != 3*time.Second {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(c.AutoDiscovery, []string{"asg:tag=a,b=c", "asg:tag=d"}) || !slices.Equal(c.Groups, []string{"one", "0:5:two"}) {
		t.Errorf("%q %q", c.AutoDiscovery, c.Groups)
	}
}

func TestConfigDefaults(t *testing.T) {
	c, err := process(t, map[string]string{"AUTOSCALER_AWS_CLUSTER_NAME": "demo"})
	if err != nil || c.VMMemoryOverheadPercent != 7.5 || c.Timeout != 10*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDiscoverySplitsRulesNotTags(t *testing.T) {
	for in, want := range map[string][]string{
		"asg:tag=a,b":                   {"asg:tag=a,b"},
		" asg:tag=a,b asg:tag=c ":       {"asg:tag=a,b", "asg:tag=c"},
		"asg:tag=a,asg:tag=b,c=d":       {"asg:tag=a", "asg:tag=b,c=d"},
		"asg:tag=a\nasg:tag=b;asg:x":    {"asg:tag=a", "asg:tag=b", "asg:x"},
		"tag=a":                         {"tag=a"},
		"tag=a asg:tag=b":               {"tag=a", "asg:tag=b"},
		"":                              nil,
		"asg:tag=url=http://asg:tag=80": {"asg:tag=url=http://asg:tag=80"},
	} {
		var d Discovery
		if err := d.Decode(in); err != nil || !slices.Equal(d, want) {
			t.Errorf("%q: %q, %v; want %q", in, []string(d), err, want)
		}
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	good := Config{ClusterName: "demo", VMMemoryOverheadPercent: 7.5, Timeout: time.Second}
	for name, c := range map[string]struct {
		edit func(*Config)
		want []string
	}{
		"a zone":       {func(c *Config) { c.Region = "eu-west-1a" }, []string{`AUTOSCALER_AWS_REGION: "eu-west-1a"`, "write its region, eu-west-1"}},
		"no region":    {func(c *Config) { c.Region = "Ireland" }, []string{`AUTOSCALER_AWS_REGION: "Ireland"`}},
		"bad bounds":   {func(c *Config) { c.Groups = []string{"x:y:z"} }, []string{`AUTOSCALER_AWS_GROUPS: "x:y:z"`, `min "x"`}},
		"min over max": {func(c *Config) { c.Groups = []string{"5:2:z"} }, []string{`AUTOSCALER_AWS_GROUPS: "5:2:z"`, "min 5 is above max 2"}},
		"two parts":    {func(c *Config) { c.Groups = []string{"5:z"} }, []string{`AUTOSCALER_AWS_GROUPS: "5:z"`, "min:max:name"}},
		"twice":        {func(c *Config) { c.Groups = []string{"z", "0:1:z"} }, []string{"named twice"}},
		"empty":        {func(c *Config) { c.Groups = []string{""} }, []string{"AUTOSCALER_AWS_GROUPS"}},
		"bad rule":     {func(c *Config) { c.AutoDiscovery = Discovery{"label:x=y"} }, []string{`AUTOSCALER_AWS_AUTO_DISCOVERY: "label:x=y"`, "asg:tag="}},
		"no key":       {func(c *Config) { c.AutoDiscovery = Discovery{"asg:tag=,a"} }, []string{"no key"}},
		"no groups":    {func(c *Config) { c.ClusterName = "" }, []string{"AUTOSCALER_AWS_CLUSTER_NAME", "AUTOSCALER_AWS_AUTO_DISCOVERY", "AUTOSCALER_AWS_GROUPS"}},
		"overhead":     {func(c *Config) { c.VMMemoryOverheadPercent = 100 }, []string{"AUTOSCALER_AWS_VM_MEMORY_OVERHEAD_PERCENT"}},
		"timeout":      {func(c *Config) { c.Timeout = 0 }, []string{"AUTOSCALER_AWS_TIMEOUT"}},
		"several":      {func(c *Config) { c.Timeout = 0; c.Region = "x"; c.Groups = []string{"1:0:a", ":"} }, []string{"TIMEOUT", "REGION", `"1:0:a"`, `":"`}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			c.edit(&bad)
			err := bad.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
	if err := good.Validate(); err != nil {
		t.Errorf("%v", err)
	}
}
