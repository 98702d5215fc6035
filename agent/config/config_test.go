package config

import (
	"os"
	"strings"
	"testing"
	"time"
)

// clean removes the prefix's variables for the time of a test.
func clean(t *testing.T) {
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, Prefix+"_") {
			t.Setenv(name, value) // restores it afterwards
			_ = os.Unsetenv(name)
		}
	}
}

func TestLoadDefaults(t *testing.T) {
	clean(t)
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if c.Scaling.UnneededFor != 10*time.Minute || c.Scaler.Quiet != 200*time.Millisecond || c.Listen != "127.0.0.1:8085" {
		t.Errorf("defaults are %+v", c)
	}
	r := c.Kubelet.Reservation()
	if r.Kube.MilliCPU != 100 || r.System.Memory != 256<<20 || r.Eviction.Memory != 100<<20 || r.EvictionStoragePercent != 10 || r.MaxPods != 110 {
		t.Errorf("default reservation is %+v", r)
	}
}

func TestLoadNamesEveryMistake(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"typo":      {map[string]string{"AUTOSCALER_SCALING_UNEEDED_FOR": "1m"}, []string{"AUTOSCALER_SCALING_UNEEDED_FOR", "did you mean AUTOSCALER_SCALING_UNNEEDED_FOR?"}},
		"foreign":   {map[string]string{"AUTOSCALER_COMPLETELY_DIFFERENT_THING": "1"}, []string{"AUTOSCALER_COMPLETELY_DIFFERENT_THING is not a variable", "--print-env"}},
		"duration":  {map[string]string{"AUTOSCALER_SCALING_UNNEEDED_FOR": "10"}, []string{"AUTOSCALER_SCALING_UNNEEDED_FOR", "10m"}},
		"two wrong": {map[string]string{"AUTOSCALER_SCALING_MAX_NODES_TOTAL": "many", "AUTOSCALER_SCALING_SCALE_DOWN": "maybe"}, []string{"AUTOSCALER_SCALING_MAX_NODES_TOTAL", "whole number", "AUTOSCALER_SCALING_SCALE_DOWN", "true or false"}},
		"expander":  {map[string]string{"AUTOSCALER_SCALING_EXPANDER": "cheapest"}, []string{"AUTOSCALER_SCALING_EXPANDER", "least-waste"}},
		"reserved":  {map[string]string{"AUTOSCALER_KUBELET_KUBE_RESERVED": "cpu=lots"}, []string{"AUTOSCALER_KUBELET_KUBE_RESERVED", "cpu=100m"}},
		"eviction":  {map[string]string{"AUTOSCALER_KUBELET_EVICTION_HARD": "memory.available<5%"}, []string{"AUTOSCALER_KUBELET_EVICTION_HARD", "bytes"}},
		"listen":    {map[string]string{"AUTOSCALER_LISTEN": "8085"}, []string{"AUTOSCALER_LISTEN", "127.0.0.1:8085"}},
		"level":     {map[string]string{"AUTOSCALER_LOG_LEVEL": "loud"}, []string{"AUTOSCALER_LOG_LEVEL", "debug"}},
		"cap":       {map[string]string{"AUTOSCALER_SCALER_CAP": "100ms"}, []string{"AUTOSCALER_SCALER_CAP", "200ms or more"}},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			_, err := Load()
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v, want %q in it", err, want)
				}
			}
			for k := range c.env {
				if os.Getenv(k) != c.env[k] {
					t.Errorf("%s was not put back", k)
				}
			}
		})
	}
}

// envconfig falls back to the bare name of a tag; a variable of another program
// must not become a setting.
func TestBareNamesAreNotRead(t *testing.T) {
	clean(t)
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	t.Setenv("OK_TOTAL_UNREADY", "77")
	t.Setenv("AUTOSCALER_SCALING_UNNEEDED_FOR", "") // empty means default
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if c.Scaling.OKTotalUnready != 3 || c.Scaling.UnneededFor != 10*time.Minute {
		t.Errorf("OKTotalUnready is %d, UnneededFor %s", c.Scaling.OKTotalUnready, c.Scaling.UnneededFor)
	}
	if os.Getenv("OK_TOTAL_UNREADY") != "77" {
		t.Error("the bare variable was not put back")
	}
}

// Variables follows envconfig's naming: a value set under every listed name arrives.
func TestVariablesAreWhatEnvconfigReads(t *testing.T) {
	clean(t)
	for _, v := range Variables() {
		switch v.Type {
		case "time.Duration":
			t.Setenv(v.Name, "no time")
		case "bool":
			t.Setenv(v.Name, "no bool")
		case "int", "int32", "int64", "float64":
			t.Setenv(v.Name, "no number")
		}
	}
	var c Config
	err := process(&c)
	for _, v := range Variables() {
		switch v.Type {
		case "time.Duration", "bool", "int", "int32", "int64", "float64":
			if err == nil || !strings.Contains(err.Error(), v.Name+" is ") {
				t.Errorf("%s is not read", v.Name)
			}
		}
	}
}

func TestExampleIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../units/agent.env.example")
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != EnvExample() {
		t.Error("units/agent.env.example is not what the code says; write it anew: go run ./cmd/autoscaler-agent check --print-env > units/agent.env.example")
	}
}

// TestWarnings: a page that others reach is warned of, one of this machine alone is not.
func TestWarnings(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:8085": false, "[::1]:8085": false, "localhost:8085": false, "off": false, "0.0.0.0:8085": true, ":8085": true, "[::]:8085": true, "10.0.0.1:8085": true, "leader:8085": true} {
		for _, page := range []bool{true, false} {
			c := Config{Listen: listen, ListenPage: page, EnvFile: os.DevNull}
			if got := c.Warnings(); (len(got) == 1) != (want && page) {
				t.Errorf("%s, page %t: %q", listen, page, got)
			}
		}
	}
}
