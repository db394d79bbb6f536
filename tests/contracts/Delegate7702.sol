// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

// What an EIP-7702 account delegates to: it stays its own signer.
contract Delegate7702 {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65)
            return 0xffffffff;
        address who = ecrecover(digest, uint8(signature[64]), bytes32(signature[0:32]), bytes32(signature[32:64]));
        return who == address(this) ? this.isValidSignature.selector : bytes4(0xffffffff);
    }
}
