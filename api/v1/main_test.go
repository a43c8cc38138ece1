package v1_test

import (
	"testing"

	"github.com/todoku/todoku/api/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }
