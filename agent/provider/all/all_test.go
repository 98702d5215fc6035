package all

import (
	"context"
	"strings"
	"testing"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestAnUnknownNameListsTheKnownOnes(t *testing.T) {
	_, err := New(context.Background(), "gcp", Config{}, cluster.Reservation{})
	if err == nil || !strings.Contains(err.Error(), `"gcp"`) || !strings.Contains(err.Error(), "asg") {
		t.Errorf("%v", err)
	}
}

func TestAKnownNameValidatesItsOwnConfiguration(t *testing.T) {
	_, err := New(context.Background(), "asg", Config{}, cluster.Reservation{})
	if err == nil || !strings.Contains(err.Error(), "AUTOSCALER_AWS_") {
		t.Errorf("%v", err)
	}
}

func TestTheConfigurationIsReadByEnvconfig(t *testing.T) {
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	var c struct{ Config }
	if err := envconfig.Process("AUTOSCALER", &c); err != nil {
		t.Fatal(err)
	}
	if err := envconfig.CheckDisallowed("AUTOSCALER", &c); err != nil || c.AWS.ClusterName != "demo" {
		t.Errorf("%+v, %v", c.AWS, err)
	}
}
