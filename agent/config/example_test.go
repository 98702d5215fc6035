package config_test

import (
	"fmt"
	"os"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// A misspelt variable and a value out of range are told together, each with its remedy.
func ExampleLoad() {
	os.Clearenv()
	for name, value := range map[string]string{
		"AUTOSCALER_AWS_CLUSTER_NAME":              "demo",
		"AUTOSCALER_SCALING_UNEEDED_FOR":           "5m",
		"AUTOSCALER_SCALING_UTILIZATION_THRESHOLD": "50",
	} {
		_ = os.Setenv(name, value) // fails only for a bad name
	}
	_, err := config.Load()
	fmt.Println(err)
	// Output:
	// AUTOSCALER_SCALING_UNEEDED_FOR is not a variable of this agent: did you mean AUTOSCALER_SCALING_UNNEEDED_FOR?
	// AUTOSCALER_SCALING_UTILIZATION_THRESHOLD is 50: use a fraction from 0 to 1, for example 0.5
}
