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

// unanswered reports whether the outcome of a request is unknown after err.
func unanswered(err error) bool {
	var answer gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &answer) {
		return answer.Actual >= 500
	}
	var syntax *json.SyntaxError
	return openstack.Classify("", "", err).Kind == provider.Transient || errors.As(err, &syntax) || errors.Is(err, context.Canceled)
}

// absent reports whether Heat answered that it has nothing for us; any other error is no
// evidence.
func absent(err error) bool {
	return gophercloud.ResponseCodeIs(err, http.StatusNotFound) || gophercloud.ResponseCodeIs(err, http.StatusForbidden)
}
