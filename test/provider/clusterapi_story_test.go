package provider_test

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/controlplane"
)

// capiStories are tests of what only Cluster API has, by name.
var capiStories = map[string]func(*testing.T, *controlplane.ControlPlane){}
