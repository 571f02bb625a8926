// Adds two plants and prints the whole list, page by page. Go 1.19 or newer, standard library only.
// Usage: BASE_URL=http://127.0.0.1:3000 TOKEN=plant_… go run go.go
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"time"
)

const maxAttempts = 5

var (
	baseURL = os.Getenv("BASE_URL")
	token   = os.Getenv("TOKEN")
	next    = regexp.MustCompile(`<([^>]*)>; rel="next"`)
	client  = &http.Client{
		Timeout: 10 * time.Second,
		// A redirected POST would become a GET, whose response would look like a successful addition.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}
)

// Plant is the body of an addition. The id is never returned.
type Plant struct {
	Name string `json:"name"`
	Tag  string `json:"tag"`
	ID   uint64 `json:"id,omitempty"`
}

// ask sends a request, and retries it if it fails. The request must be safe to retry.
func ask(method, address string, body []byte, into any) (http.Header, error) {
	for attempt := 1; ; attempt++ {
		response, answer, err := send(method, address, body)
		status := 0
		wait := 0
		if err == nil {
			status = response.StatusCode
			wait, _ = strconv.Atoi(response.Header.Get("Retry-After"))
			if status == http.StatusOK {
				return response.Header, json.Unmarshal(answer, into)
			}
			err = fmt.Errorf("%s: %s", response.Status, answer)
		}
		retryable := status == 0 || status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504)
		if attempt == maxAttempts || !retryable {
			return nil, err
		}
		// A random pause that grows with each attempt, so that clients do not all retry at once.
		random := time.Duration(randomID() % uint64(100*time.Millisecond<<attempt))
		time.Sleep(time.Duration(wait)*time.Second + random)
	}
}

// send makes one attempt. It reads the whole body, because the connection may fail in the middle of it.
func send(method, address string, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response, answer, err
}

// randomID returns an id that makes additions safe to retry: the service adds the plant once.
func randomID() uint64 {
	var bits [8]byte
	if _, err := rand.Read(bits[:]); err != nil {
		panic(err)
	}
	return binary.BigEndian.Uint64(bits[:]) >> 11
}

func add(plant Plant) (added Plant, err error) {
	plant.ID = randomID()
	body, err := json.Marshal(plant)
	if err == nil {
		_, err = ask(http.MethodPost, baseURL+"/plants", body, &added)
	}
	return added, err
}

// each calls visit for every plant of the list, page by page.
func each(pageSize int, visit func(Plant)) error {
	address := fmt.Sprintf("%s/plants?limit=%d", baseURL, pageSize)
	for address != "" {
		var plants []Plant
		header, err := ask(http.MethodGet, address, nil, &plants)
		if err != nil {
			return err
		}
		for _, plant := range plants {
			visit(plant)
		}
		link := next.FindStringSubmatch(header.Get("Link"))
		if link == nil {
			return nil
		}
		here, _ := url.Parse(address)
		there, err := here.Parse(link[1])
		if err != nil {
			return err
		}
		address = there.String()
	}
	return nil
}

func main() {
	for _, plant := range []Plant{{Name: "Black alder", Tag: "Alnus glutinosa"}, {Name: "Grey alder", Tag: "Alnus incana"}} {
		added, err := add(plant)
		if err != nil {
			fail(err)
		}
		fmt.Printf("%s (%s)\n", added.Name, added.Tag)
	}
	if err := each(100, func(plant Plant) { fmt.Printf("%s (%s)\n", plant.Name, plant.Tag) }); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
