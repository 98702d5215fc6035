package nova

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// consoleLines is how much of a console is asked for.
const consoleLines = 1000

var serverPattern = regexp.MustCompile(`\A[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\z`)

// ReadConsole returns the end of what a server has written to its console. region is "" for
// that of the credentials.
func ReadConsole(ctx context.Context, access openstack.Config, region, server string) (string, error) {
	op := "read the console of " + server
	if !serverPattern.MatchString(server) {
		return "", errors.New(op + ": it is no server's ID")
	}
	session, err := openstack.NewSession(access, nil)
	if err != nil {
		return "", err
	}
	compute, err := session.Service(ctx, "compute", region)
	if err != nil {
		return "", err
	}
	var answer struct {
		Output string `json:"output"`
	}
	ask := map[string]any{"os-getConsoleOutput": map[string]any{"length": consoleLines}}
	if _, err := compute.Post(ctx, compute.ServiceURL("servers", server, "action"), ask, &answer, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}}); err != nil {
		if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return "", fmt.Errorf("%s: there is no such server", op)
		}
		return "", openstack.Classify(op, "", err)
	}
	return answer.Output, nil
}
