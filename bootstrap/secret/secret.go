// Package secret publishes join information as a Secret of the cluster, for tools that make
// machines and read the cluster's objects.
//
// It refuses any other name than its own, and to write over a Secret that the agent did not
// make.
package secret

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Name is the Secret's, in kube-system: units/rbac.yaml and units/admission-policy.yaml allow
// no other. Label marks it as the agent's.
const (
	Name  = "autoscaler-agent-join"
	Label = "autoscaler-agent/join-information"
)

// Sink writes the Secret.
type Sink struct{ client *kube.Client }

// New returns a sink.
func New(client *kube.Client) *Sink { return &Sink{client: client} }

// Name implements bootstrap.Sink.
func (s *Sink) Name() string { return "Secret " + metav1.NamespaceSystem + "/" + Name }

// Make is the Secret that join information is published as. Its keys are the names of the file.
func Make(join bootstrap.Join) (*corev1.Secret, error) {
	text, err := bootstrap.Render(join)
	if err != nil {
		return nil, err
	}
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: Name, Labels: map[string]string{Label: "true"}},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{}}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		out.Data[key] = []byte(value)
	}
	return out, nil
}

// Holds implements bootstrap.Holder.
func (s *Sink) Holds(ctx context.Context, join bootstrap.Join) (bool, error) {
	want, err := Make(join)
	if err != nil {
		return false, err
	}
	is, err := s.client.CoreV1().Secrets(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && maps.EqualFunc(is.Data, want.Data, func(a, b []byte) bool { return string(a) == string(b) }), explained(err)
}

// Publish implements bootstrap.Sink.
func (s *Sink) Publish(ctx context.Context, join bootstrap.Join) error {
	want, err := Make(join)
	if err != nil {
		return err
	}
	secrets := s.client.CoreV1().Secrets(want.Namespace)
	is, err := secrets.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(ctx, want, metav1.CreateOptions{})
		return explained(err)
	}
	if err != nil {
		return explained(err)
	}
	if is.Labels[Label] == "" {
		return fmt.Errorf("it is there and is not the agent's (label %s): delete it, or set AUTOSCALER_BOOTSTRAP_SECRET=false", Label)
	}
	is.Data = want.Data
	_, err = secrets.Update(ctx, is, metav1.UpdateOptions{}) // as the object that was read: a conflict is the next round's
	return explained(err)
}

func explained(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w (kubectl apply -f admission-policy.yaml -f rbac.yaml)", err)
	}
	return err
}
