package simulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/todoku/todoku/simulator"
)

// A message that a load balancer's page of HTML answers although it was accepted: the sender does not know, the
// simulator does.
func Example() {
	sim := simulator.New(simulator.Options{})
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()

	behaviour := strings.NewReader(`{"fault": {"kind": "html_503_after_accept", "count": 1}}`)
	steer, _ := http.NewRequest("PUT", server.URL+"/_simulator/behaviour", behaviour)
	if response, err := server.Client().Do(steer); err == nil {
		response.Body.Close()
	}

	account := "AC00000000000000000000000000000000"
	form := url.Values{"To": {"+15550100001"}, "From": {"+15005550006"}, "Body": {"hello"}}
	create, _ := http.NewRequest("POST", server.URL+"/2010-04-01/Accounts/"+account+"/Messages.json",
		strings.NewReader(form.Encode()))
	create.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	create.SetBasicAuth(account, "anytoken")
	if response, err := server.Client().Do(create); err == nil {
		response.Body.Close()
		fmt.Println(response.Status)
	}

	var stats struct{ Creates, Duplicates int }
	if response, err := server.Client().Get(server.URL + "/_simulator/stats"); err == nil {
		_ = json.NewDecoder(response.Body).Decode(&stats)
		response.Body.Close()
	}
	fmt.Printf("%+v\n", stats)
	// Output:
	// 503 Service Unavailable
	// {Creates:1 Duplicates:0}
}
