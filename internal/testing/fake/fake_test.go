package fake_test

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fakeworld"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
)

func TestTheFakeKeepsTheContract(t *testing.T) {
	providertest.Suite{New: fakeworld.New, Settle: fakeworld.Settle}.Run(t)
}
