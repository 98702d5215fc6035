package magnum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// fail builds an error of the contract.
func fail(op string, id cluster.GroupID, kind provider.Kind, remedy, format string, args ...any) *provider.Error {
	return &provider.Error{Op: op, Group: id, Kind: kind, Remedy: remedy, Err: fmt.Errorf(format, args...)}
}

// errHollow is a success that lacks what every answer has: it is taken for no answer,
// since an empty list must not make groups vanish.
var errHollow = &provider.Error{Kind: provider.Transient, Err: errors.New("the answer is empty or cut short")}

// unanswered tells an error after which nobody knows whether the request was done.
func unanswered(err error) bool {
	var answer gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &answer) {
		return answer.Actual >= 500
	}
	var syntax *json.SyntaxError
	return openstack.Classify("", "", err).Kind == provider.Transient || errors.As(err, &syntax) || errors.Is(err, context.Canceled)
}

// absent tells an answer by which Heat has nothing for us, as opposed to one that says
// nothing.
func absent(err error) bool {
	return gophercloud.ResponseCodeIs(err, http.StatusNotFound) || gophercloud.ResponseCodeIs(err, http.StatusForbidden)
}
