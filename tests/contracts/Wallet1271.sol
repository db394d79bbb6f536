// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

// A contract that pays. Its signature is its owner's 65 bytes, with anything behind them, so that tests can make
// signatures of any length. The owner may change: what was signed before is then no longer valid.
contract Wallet1271 {
    address public owner;

    constructor(address owner_) {
        owner = owner_;
    }

    function setOwner(address owner_) external {
        owner = owner_;
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length < 65)
            return 0xffffffff;
        address who = ecrecover(digest, uint8(signature[64]), bytes32(signature[0:32]), bytes32(signature[32:64]));
        return who != address(0) && who == owner ? this.isValidSignature.selector : bytes4(0xffffffff);
    }
}
