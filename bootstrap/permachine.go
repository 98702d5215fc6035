package bootstrap

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// machineTokenTTL is how long the token of one machine lives: as long as a machine may
// take to be built, to boot, to install what its image lacks and to join. The controller
// manager's token cleaner removes it then.
const machineTokenTTL = time.Hour

// machineLabelValue marks the tokens of single machines: the published one is chosen among
// those with tokenLabelValue.
const machineLabelValue = "machine"

// TokensFor returns a minter of join tokens for single machines: what leaks from one
// machine's user data opens the door for an hour, and its Secret says which machine it
// was for. cfg has been validated.
func TokensFor(client kubernetes.Interface, cfg Config) func(ctx context.Context, machine string) (string, error) {
	cfg.TokenTTL = min(cfg.TokenTTL, machineTokenTTL)
	return func(ctx context.Context, machine string) (string, error) {
		s, err := mint(time.Now(), cfg)
		if err != nil {
			return "", err
		}
		s.Labels = map[string]string{TokenLabel: machineLabelValue}
		s.Annotations = map[string]string{MachineAnnotation: machine}
		s.Data[keyDescription] = []byte("autoscaler-agent: for machine " + machine)
		if _, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return "", fmt.Errorf("mint a join token for %s: %w", machine, err)
		}
		return string(s.Data[keyID]) + "." + string(s.Data[keySecret]), nil
	}
}
