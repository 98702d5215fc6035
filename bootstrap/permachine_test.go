package bootstrap

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestTokensForSingleMachines(t *testing.T) {
	client := fake.NewClientset()
	cfg := Config{TokenTTL: 24 * time.Hour, TokenGroups: []string{"system:bootstrappers:kubeadm:default-node-token"}}
	mint := TokensFor(client, cfg)
	tokens := map[string]bool{}
	for _, name := range []string{"workers-a", "workers-b"} {
		token, err := mint(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		tokens[token] = true
	}
	list, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || len(tokens) != 2 {
		t.Fatalf("%d Secrets, %d tokens, %v", len(list.Items), len(tokens), err)
	}
	for _, s := range list.Items {
		if !tokens[string(s.Data[keyID])+"."+string(s.Data[keySecret])] {
			t.Errorf("Secret %s is none of the tokens", s.Name)
		}
		if left := time.Until(expires(&s)); left > machineTokenTTL || left < machineTokenTTL-time.Minute {
			t.Errorf("it lives %s", left)
		}
		if !strings.Contains(string(s.Data[keyDescription]), "workers-") {
			t.Errorf("description %q", s.Data[keyDescription])
		}
		// The service that publishes a token must not take one of these for its own.
		if s.Labels[TokenLabel] != machineLabelValue {
			t.Errorf("it is labelled as the published token: %v", s.Labels)
		}
	}
}
