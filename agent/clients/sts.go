package clients

import "os"

// STSEndpoint is where the SDK's own variables say that STS is; empty: at its own host.
func STSEndpoint() string {
	if at := os.Getenv("AWS_ENDPOINT_URL_STS"); at != "" {
		return at
	}
	return os.Getenv("AWS_ENDPOINT_URL")
}
