"""Adds two plants and prints the whole list, page by page. Python 3.8 or newer, standard library only.

Usage: BASE_URL=http://127.0.0.1:3000 TOKEN=plant_… python3 python.py
"""

import http.client
import json
import os
import random
import re
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request

BASE_URL = os.environ["BASE_URL"]
TOKEN = os.environ["TOKEN"]
MAX_ATTEMPTS = 5


class Refused(Exception):
    """A problem (RFC 9457) that a retry does not solve."""

    def __init__(self, problem):
        faults = [f"{f.get('pointer', f.get('parameter'))}: {f['detail']}" for f in problem.get("errors", [])]
        super().__init__("\n".join([f"{problem['status']} {problem['title']}: {problem['detail']}", *faults]))
        self.problem = problem


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, whose response would look like a successful addition."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirects)


def ask(url, body=None):
    """Sends a request, and retries it if it fails. The request must be safe to retry."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    for attempt in range(1, MAX_ATTEMPTS + 1):
        seconds = 0
        try:
            request = urllib.request.Request(url, data, headers)
            with opener.open(request, timeout=10) as response:
                return json.load(response), response.headers.get("Link", "")
        except urllib.error.HTTPError as error:
            if attempt == MAX_ATTEMPTS or error.code not in (408, 429, 500, 502, 503, 504):
                raise Refused(read_problem(error)) from None
            seconds = read_seconds(error)
        except (OSError, http.client.HTTPException):
            if attempt == MAX_ATTEMPTS:
                raise
        # A random pause that grows with each attempt, so that clients do not all retry at once.
        time.sleep(seconds + random.random() * 0.1 * 2**attempt)


def read_problem(error):
    """Reads a problem, or describes a response that is not from the service."""
    try:
        return json.load(error)
    except ValueError:
        detail = error.headers.get("Location", "not from the Plant Store")
        return {"status": error.code, "title": error.reason, "detail": detail}


def read_seconds(error):
    """Reads Retry-After in seconds. Ignores a date, which only a proxy may send."""
    text = error.headers.get("Retry-After", "")
    return int(text) if text.isdigit() else 0


def add(plant):
    """Adds a plant. The id makes additions safe to retry: the service adds the plant once."""
    added, _ = ask(f"{BASE_URL}/plants", {"id": secrets.randbits(53), **plant})
    return added


def all_plants(page_size=100):
    url = f"{BASE_URL}/plants?limit={page_size}"
    while url:
        plants, link = ask(url)
        yield from plants
        following = re.search(r'<([^>]*)>; rel="next"', link)
        url = urllib.parse.urljoin(url, following.group(1)) if following else None


print(add({"name": "Black alder", "tag": "Alnus glutinosa"}))
print(add({"name": "Grey alder", "tag": "Alnus incana"}))
for plant in all_plants():
    print(f"{plant['name']} ({plant['tag']})")
