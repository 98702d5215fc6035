package nova

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// statusOf is the HTTP status of the answer in err; 0: there was none.
func statusOf(err error) int {
	var code gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &code) {
		return code.Actual
	}
	return 0
}

// errHollow is an answer of 200 that has nothing in it.
var errHollow = &provider.Error{Kind: provider.Transient, Err: errors.New("the answer of OpenStack is empty or cut short")}

func missing(err error) bool { return statusOf(err) == http.StatusNotFound }

// unsure reports whether a request may have been carried out although it failed: there was
// no answer, or one of a proxy or of a service that broke off.
func unsure(err error) bool {
	if err == nil {
		return false
	}
	code := statusOf(err)
	return code == 0 && provider.KindOf(openstack.Classify("", "", err)) != provider.Denied || code >= 500
}

// invalidRequest is a mistake in the group's configuration.
func invalidRequest(format string, args ...any) error {
	return &provider.Error{Kind: provider.Invalid, Err: fmt.Errorf(format, args...)}
}

// invalid is an error of kind Invalid for a write.
func invalid(op string, id cluster.GroupID, remedy, format string, args ...any) error {
	return &provider.Error{Op: op, Group: id, Kind: provider.Invalid, Err: fmt.Errorf(format, args...), Remedy: remedy}
}
