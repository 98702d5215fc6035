package clients

import "testing"

// TestSTSEndpoint: STS is at its own host unless the SDK's own variables say otherwise.
func TestSTSEndpoint(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("AWS_ENDPOINT_URL_STS", "")
	if got := STSEndpoint(); got != "" {
		t.Errorf("got %q", got)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://a")
	t.Setenv("AWS_ENDPOINT_URL_STS", "http://b")
	if got := STSEndpoint(); got != "http://b" {
		t.Errorf("got %q", got)
	}
}
