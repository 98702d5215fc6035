package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

func TestASectionThatNobodyReads(t *testing.T) {
	file := &groups.File{Clouds: map[string]json.RawMessage{"nova": nil, "magnum": nil, "asg": nil}}
	if why := (Config{Provider: "asg"}).IdleSections(file); !strings.Contains(why, "magnum, nova") || !strings.Contains(why, "AUTOSCALER_PROVIDER") {
		t.Errorf("%q", why)
	}
	delete(file.Clouds, "magnum")
	delete(file.Clouds, "nova")
	if why := (Config{Provider: "asg"}).IdleSections(file); why != "" {
		t.Errorf("%q", why)
	}
}

func TestMissingSections(t *testing.T) {
	file := &groups.File{}
	if got := (Config{Provider: "asg,nova,magnum,externalgrpc,clusterapi"}).MissingSections(file); !slices.Equal(got, []string{"nova"}) {
		t.Errorf("%q", got)
	}
	file.Clouds = map[string]json.RawMessage{"nova": json.RawMessage(`{}`)}
	if got := (Config{Provider: "nova"}).MissingSections(file); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
