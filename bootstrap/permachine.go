package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// revokeUsed ends the tokens of single machines whose Node has become Ready since: kubeadm
// needs a token no longer than that, and one that is read from a machine's user data later,
// or from the cloud after the machine is gone, opens nothing. A token ends by its
// expiration; the controller manager's token cleaner removes the Secret. What cannot be
// read or written now is looked at again in the next round, and expires by itself.
func (s *Service) revokeUsed(ctx context.Context) {
	if leads, _ := s.deps.MayAct(); !leads {
		return
	}
	secrets := s.deps.Client.CoreV1().Secrets(metav1.NamespaceSystem)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: TokenLabel + "=" + machineLabelValue})
	if err != nil {
		s.log.WithError(err).Debug("tokens of single machines cannot be listed")
		return
	}
	now := time.Now()
	for i := range list.Items {
		t := list.Items[i].DeepCopy()
		machine := t.Annotations[MachineAnnotation]
		if machine == "" || usable(t, now, Config{}) != "" {
			continue
		}
		n, err := s.deps.Client.CoreV1().Nodes().Get(ctx, machine, metav1.GetOptions{})
		if err != nil || !joinedWith(n, t) {
			if err != nil && !apierrors.IsNotFound(err) {
				s.log.WithError(err).WithField("node", machine).Debug("whether a machine has joined cannot be seen")
			}
			continue
		}
		t.Data[keyExpiration] = expiry(now.Add(-time.Second))
		entry := s.log.WithFields(logrus.Fields{"token": string(t.Data[keyID]), "node": machine})
		if _, err := secrets.Update(ctx, t, metav1.UpdateOptions{}); err != nil {
			entry.WithError(err).Debug("the token of a machine that has joined cannot be revoked")
			continue
		}
		entry.Info("token revoked: its machine has joined")
		s.count("bootstrap_tokens_total", "what", "revoked")
	}
}

// joinedWith tells that a Ready Node was made after the token: an older Node of the name is
// another machine's.
func joinedWith(n *corev1.Node, token *corev1.Secret) bool {
	return !n.CreationTimestamp.Before(&token.CreationTimestamp) && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
