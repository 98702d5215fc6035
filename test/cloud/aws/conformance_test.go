package aws_test

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/cloud/aws"
)

func checked(t *testing.T) func(aws.Exchange) { return func(aws.Exchange) {} }
